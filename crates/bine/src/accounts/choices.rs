//! The configuration keys of accounts, for a server without a program.

use super::account_name::check_name;
use super::password_hash::is_hash;
use crate::configuration::{Configuration, Key, KeyGroup, Kind};
use crate::text::Text;

/// The accounts that the configuration sets.
#[derive(Clone, Debug, Default)]
pub(super) struct AccountChoices {
    /// Whether a server without a program has accounts.
    pub(super) is_on: bool,
    pub(super) declared: Vec<DeclaredAccount>,
}

/// An account that the configuration declares.
#[derive(Clone)]
pub(super) struct DeclaredAccount {
    pub(super) name: Text,
    /// The hash of its password as a PHC string.
    pub(super) hash: Text,
}

/// Without the hash.
impl std::fmt::Debug for DeclaredAccount {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "DeclaredAccount({})", self.name)
    }
}

impl AccountChoices {
    /// Whether the server has accounts, whatever the program sets.
    pub(super) fn are_some(&self) -> bool {
        self.is_on || !self.declared.is_empty()
    }
}

inventory::submit! {
    KeyGroup { keys: KEYS, after: "sync", rank: 40, adds_content: |configuration| configuration.choice::<AccountChoices>().are_some() }
}

static KEYS: &[Key] = &[
    Key::server(
        "accounts",
        "on|off",
        &["off"],
        "have a log-in page and accounts in a server without a program; `bine user add` creates them",
        |c, v| {
            choices(c).is_on = match v {
                "on" => true,
                "off" => false,
                _ => return Err("must be on or off".to_owned()),
            };
            Ok(())
        },
    )
    .kind(Kind::Switch)
    .fixed(),
    Key::server(
        "account",
        "NAME:HASH",
        &[],
        "an account with the hash of its password, repeatable; `bine user hash` prints a hash",
        |c, v| {
            let account = parse(v)?;
            let declared = &mut choices(c).declared;
            if declared.iter().any(|other| other.name == account.name) {
                return Err(format!("names {} twice", account.name));
            }
            declared.push(account);
            Ok(())
        },
    )
    .kind(Kind::Lines)
    .fixed(),
];

fn choices(configuration: &mut Configuration) -> &mut AccountChoices {
    configuration.choice_mut()
}

fn parse(text: &str) -> Result<DeclaredAccount, String> {
    let (name, hash) = text.split_once(':').ok_or("must be NAME:HASH")?;
    let name = check_name(name).map_err(|reason| format!("the name {reason}"))?;
    if !is_hash(hash) {
        return Err(
            "must have a hash like $argon2id$v=19$..; `bine user hash` prints one".to_owned()
        );
    }
    Ok(DeclaredAccount { name, hash: hash.into() })
}
