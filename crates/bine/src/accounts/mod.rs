//! Accounts: users who sign up, log in by a password, and change or remove their account.
//!
//! The pages and the services run the same code. A password is hashed on its own thread; a throttle
//! limits the tries of one address block and for one account.

mod account;
mod account_name;
mod account_page;
mod account_row;
mod changes;
mod choices;
mod commands;
mod denial;
mod directory;
mod form;
mod hash_pool;
mod hash_queue;
mod log_in;
mod mail;
mod mailing;
mod pages;
mod password_hash;
mod password_rule;
mod services;
mod settings;
mod sign_up;
mod signed_link;
mod subsystem;
mod throttle;
mod trusted_hosts;
mod visit;

use std::fmt;
use std::time::Duration;

use crate::error::Error;
use crate::store::Transaction;
use crate::text::Text;

pub use account::Account;
#[cfg(feature = "test")]
pub use hash_pool::keep_hash_priority;
pub use mail::{Mail, MailKind};
pub use password_hash::HashingCost;
use password_rule::{MAX_LENGTH, SHORTEST_MINIMUM};
use settings::AccountSettings;
pub use settings::SignUp;
#[doc(hidden)]
pub use signed_link::check_link;

/// The accounts of a program: the argument of [`App::accounts`](crate::App::accounts).
///
/// ```
/// use std::time::Duration;
///
/// use bine::prelude::*;
/// use bine::{Accounts, Mail};
///
/// async fn send(mail: Mail) -> Result<(), Error> {
///     println!("to {}: {}\n{}", mail.to, mail.subject, mail.text);
///     Ok(())
/// }
///
/// let accounts = Accounts::new()
///     .minimum_password_length(12)
///     .link_lifetime(Duration::from_secs(30 * 60))
///     .address("https://example.org")
///     .mail(send);
/// let app = App::new().accounts(accounts);
/// # drop(app);
/// ```
#[must_use = "accounts do nothing before `App::accounts` has them"]
pub struct Accounts(AccountSettings);

impl Accounts {
    /// The defaults: every visitor may sign up, the e-mail address is optional, a password has at
    /// least 8 characters, a link in a mail is valid for an hour, and passwords are hashed by
    /// argon2id with 19 MiB and two passes, on one thread.
    pub fn new() -> Self {
        Self(AccountSettings::default())
    }

    /// Puts all paths of accounts below this one, such as `/members`.
    pub fn prefix(mut self, path: &str) -> Self {
        let path = path.trim_matches('/');
        self.0.prefix = if path.is_empty() { String::new() } else { format!("/{path}") };
        self
    }

    /// Sets which visitors may sign up.
    pub const fn sign_up(mut self, sign_up: SignUp) -> Self {
        self.0.sign_up = sign_up;
        self
    }

    /// Sets the fewest characters of a password: at least 8, at most 64. OWASP recommends 15 where
    /// the password is the only factor.
    pub fn minimum_password_length(mut self, characters: usize) -> Self {
        self.0.minimum = characters.clamp(SHORTEST_MINIMUM, MAX_LENGTH / 4);
        self
    }

    /// Requires an e-mail address at the sign-up. A user may log in before the address is
    /// confirmed.
    pub const fn require_email(mut self) -> Self {
        self.0.requires_email = true;
        self
    }

    /// Sets how long a link in a mail is valid: from a minute to a day.
    pub fn link_lifetime(mut self, time: Duration) -> Self {
        self.0.link_lifetime = time.as_secs().clamp(60, 24 * 60 * 60);
        self
    }

    /// Sets the cost of a password's hash. A user's password is hashed again at the next log-in.
    pub const fn hashing_cost(mut self, cost: HashingCost) -> Self {
        self.0.cost = cost;
        self
    }

    /// Sets how many threads hash passwords, from 1 to 16. Each needs the memory of one hash.
    pub fn hashing_threads(mut self, threads: usize) -> Self {
        self.0.threads = threads.clamp(1, 16);
        self
    }

    /// Sets the scheme and host of the links in mails, like `https://example.org`. Without it, they
    /// have the host of the request, if the configuration restricts the hosts that the server
    /// answers for; an attacker could choose it otherwise.
    pub fn address(mut self, address: &str) -> Self {
        self.0.address = Some(address.trim_end_matches('/').to_owned());
        self
    }

    /// Adds a switch to the account page, which sets the preference `name` to true or false.
    pub fn switch(mut self, name: &str, label: &str) -> Self {
        self.0.switches.push((Text::from(name), Text::from(label)));
        self
    }

    /// Sets the function that sends mails. It runs in the background, for at most 30 s. Without it,
    /// the link of a mail is in the log in development, and no mail is sent in production.
    pub fn mail<F, R, E>(mut self, send: F) -> Self
    where
        F: Fn(Mail) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Error> + 'static,
    {
        self.0.mail = Some(Box::new(move |mail| {
            let sending = send(mail);
            Box::pin(async move { sending.await.map_err(Into::into) })
        }));
        self
    }

    /// Runs when an account is removed, in the same transaction: the place to remove or keep the
    /// rows of its user. It may run again after a conflict. Its error keeps the account.
    pub fn on_account_removed(
        mut self,
        run: impl Fn(&mut Transaction, &str) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.0.on_removed = Some(Box::new(run));
        self
    }
}

impl Default for Accounts {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Accounts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AccountSettings { prefix, sign_up, minimum, .. } = &self.0;
        to.debug_struct("Accounts")
            .field("prefix", prefix)
            .field("sign_up", sign_up)
            .field("minimum_password_length", minimum)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod command_tests;
#[cfg(all(test, feature = "test"))]
mod tests;
