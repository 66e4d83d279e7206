//! The access rule of a service or an action: `who = ..`.

use crate::literal;
use crate::token::{Kind, Token};

/// The clients that may call a service or an action.
#[derive(Clone, Copy)]
pub(crate) enum Access<'t> {
    Anyone,
    Users,
    /// A path to a constant of the program.
    Rule(&'t [Token]),
}

/// The predicate of an error message; the subject precedes it.
pub(crate) const ACCESS_FORMS: &str = "takes `who = \"user\"` for logged-in users, `who = \"anyone\"` for everyone, or a constant of the type `Rule`";

impl<'t> Access<'t> {
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
