//! The stored row of an API token.

use bine_macros::Table;

use super::ApiToken;
use crate::credentials::CredentialScope;
use crate::store::{Id, Time};
use crate::text::Text;

/// An API token of a user. Its id holds its creation time.
#[derive(Clone, Debug, Table)]
#[table(crate = crate, name = "bine_api_token")]
pub(super) struct TokenRow {
    pub(super) id: Id<TokenRow>,
    /// The SHA-256 of the token. A token has 192 random bits, so that a slow hash is unnecessary.
    #[table(unique, private, length = 32..=32)]
    pub(super) hash: Vec<u8>,
    #[table(index, private, length = 1..=200)]
    pub(super) user: Text,
    #[table(private, length = 1..=100)]
    pub(super) label: Text,
    #[table(private)]
    pub(super) is_read_only: bool,
    /// Paths, separated by spaces.
    #[table(private)]
    pub(super) paths: String,
    #[table(index, private)]
    pub(super) expires: Time,
    #[table(private)]
    pub(super) last_used: Option<Time>,
}

impl TokenRow {
    pub(super) fn scope(&self) -> CredentialScope {
        let paths = self.paths.split_whitespace().map(str::to_owned).collect();
        CredentialScope { is_read_only: self.is_read_only, paths }
    }

    /// The description for the user.
    pub(super) fn described(&self) -> ApiToken {
        ApiToken {
            id: self.id.row(),
            label: self.label.clone(),
            scope: self.scope().to_string(),
            created: Time(i64::try_from(self.id.row().milliseconds() * 1000).unwrap_or(i64::MAX)),
            expires: self.expires,
            last_used: self.last_used,
        }
    }
}
