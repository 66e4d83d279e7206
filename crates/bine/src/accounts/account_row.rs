//! The stored row of an account.

use bine_macros::Table;
use serde_json::{Map, Value};

use crate::store::{Id, Snapshot, Time};
use crate::text::Text;
use crate::user_name::name_key;

/// An account. It has no `Debug`, so that no hash gets into a log.
#[derive(Clone, Table)]
#[table(crate = crate, name = "bine_account")]
pub(super) struct AccountRow {
    pub(super) id: Id<AccountRow>,
    /// The name as its user wrote it at the sign-up. It never changes.
    #[table(length = 1..=200)]
    pub(super) name: Text,
    /// The name as it is [compared](name_key).
    #[table(unique, private, length = 1..=800, label = "name")]
    pub(super) key: Text,
    /// The confirmed e-mail address.
    #[table(private, length = 3..=254)]
    pub(super) email: Option<Text>,
    /// The confirmed address as it is compared.
    #[table(unique, private, length = 3..=800, label = "e-mail address")]
    pub(super) email_key: Option<Text>,
    /// An address to which the server has sent a link that confirms it.
    #[table(private, length = 3..=254)]
    pub(super) pending_email: Option<Text>,
    /// The hash of the password as a PHC string; empty: login is disabled.
    #[table(private, length = 0..=300)]
    pub(super) hash: Text,
    pub(super) created: Time,
    pub(super) password_changed: Time,
    pub(super) is_blocked: bool,
    /// Whether the configuration declares it.
    pub(super) is_declared: bool,
    /// A JSON object.
    #[table(private, length = 2..=4096)]
    pub(super) preferences: String,
    /// The number of the invitation that its user has used, so that it works only once.
    #[table(unique, private, length = 16..=16)]
    pub(super) invitation: Option<Vec<u8>>,
}

impl AccountRow {
    /// A new account.
    pub(super) fn new(name: &str, hash: String, now: Time) -> Self {
        Self {
            id: Id::unassigned(),
            name: name.into(),
            key: name_key(name),
            email: None,
            email_key: None,
            pending_email: None,
            hash: hash.into(),
            created: now,
            password_changed: now,
            is_blocked: false,
            is_declared: false,
            preferences: "{}".to_owned(),
            invitation: None,
        }
    }

    /// The account with this name.
    pub(super) fn find(now: &Snapshot, name: &str) -> Option<Self> {
        now.one(Self::BY_KEY, name_key(name))
    }

    /// The account with this confirmed e-mail address.
    pub(super) fn by_email(now: &Snapshot, email: &str) -> Option<Self> {
        now.one(Self::BY_EMAIL_KEY, Some(name_key(email)))
    }

    /// The account with this name or this e-mail address. A name contains no `@`.
    pub(super) fn named(now: &Snapshot, text: &str) -> Option<Self> {
        if text.contains('@') { Self::by_email(now, text) } else { Self::find(now, text) }
    }

    /// Sets the confirmed e-mail address.
    pub(super) fn set_email(&mut self, email: Option<Text>) {
        self.email_key = email.as_deref().map(name_key);
        self.email = email;
        self.pending_email = None;
    }

    /// The preferences.
    pub(super) fn preferences(&self) -> Map<String, Value> {
        // Only this module writes the column.
        serde_json::from_str(&self.preferences).unwrap_or_default()
    }
}
