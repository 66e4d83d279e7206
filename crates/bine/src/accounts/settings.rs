//! The settings of accounts, which [`Accounts`](crate::Accounts) collects.

use super::mail::MailFunction;
use super::password_hash::HashingCost;
use super::password_rule::SHORTEST_MINIMUM;
use crate::error::Error;
use crate::store::Transaction;
use crate::text::Text;

/// The settings of the accounts of a program.
pub(super) struct AccountSettings {
    /// The path before all paths of accounts; empty or like `/members`.
    pub(super) prefix: String,
    pub(super) sign_up: SignUp,
    /// The fewest characters of a password.
    pub(super) minimum: usize,
    pub(super) requires_email: bool,
    /// Seconds for which a link in a mail is valid.
    pub(super) link_lifetime: u64,
    pub(super) cost: HashingCost,
    /// Threads for hashes.
    pub(super) threads: usize,
    /// Scheme and host of links in mails, like `https://example.org`.
    pub(super) address: Option<String>,
    /// Names and labels of the switches on the account page.
    pub(super) switches: Vec<(Text, Text)>,
    pub(super) mail: Option<MailFunction>,
    pub(super) on_removed: Option<RemovalFunction>,
}

/// Runs in the transaction that removes an account.
pub(super) type RemovalFunction =
    Box<dyn Fn(&mut Transaction, &str) -> Result<(), Error> + Send + Sync>;

/// The visitors permitted to sign up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SignUp {
    /// Every visitor.
    #[default]
    Open,
    /// Visitors with an invitation, which [`Account::invite`](crate::Account::invite) and
    /// `bine user invite` create.
    ByInvitation,
    /// No visitor: accounts are created by `bine user add` or by the configuration.
    Closed,
}

impl Default for AccountSettings {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            sign_up: SignUp::Open,
            minimum: SHORTEST_MINIMUM,
            requires_email: false,
            link_lifetime: 60 * 60,
            cost: HashingCost::default(),
            threads: 1,
            address: None,
            switches: Vec::new(),
            mail: None,
            on_removed: None,
        }
    }
}

impl AccountSettings {
    /// The path of a page.
    pub(super) fn path(&self, page: &str) -> String {
        format!("{}{page}", self.prefix)
    }
}
