//! Decides whom a service or an action is for, where its declaration says that by `who = ..`.

use crate::literal;
use crate::token::{Kind, Token};

/// Whom it is for.
#[derive(Clone, Copy)]
pub(crate) enum Who<'t> {
    Anyone,
    Users,
    /// A rule of the program's own: a path to a constant.
    Rule(&'t [Token]),
}

/// The rest of a fault that begins with what it is of.
pub(crate) const WHOM: &str = "is for `\"user\"`, who has logged in, for `\"anyone\"`, or for whom a constant of the type `Rule` says";

impl<'t> Who<'t> {
    pub(crate) fn read(who: &'t [Token]) -> Option<Self> {
        match who {
            [one] if matches!(one.kind, Kind::Literal) => {
                match literal::string(one)?.ok()?.as_str() {
                    "user" => Some(Self::Users),
                    "anyone" => Some(Self::Anyone),
                    _ => None,
                }
            }
            [_, ..] => Some(Self::Rule(who)),
            [] => None,
        }
    }
}
