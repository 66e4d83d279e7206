//! The mails that the server asks the program to send.

use std::fmt::Write as _;
use std::pin::Pin;

use crate::error::Error;
use crate::text::Text;

/// A mail to a user, for the function that [`Accounts::mail`](crate::Accounts::mail) sets. It has
/// an English subject and text, and the parts to write another one.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mail {
    /// The reason.
    pub kind: MailKind,
    /// The address of the recipient.
    pub to: Text,
    /// The name of the account.
    pub name: Text,
    /// The link that the recipient opens, if the mail has one. It is secret: its bearer acts for
    /// the user.
    pub link: Option<String>,
    /// The subject.
    pub subject: String,
    /// The content as plain text.
    pub text: String,
}

/// The reason of a [`Mail`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MailKind {
    /// The user has forgotten the password; the link sets a new one.
    ResetPassword,
    /// The link confirms that the address belongs to the user.
    ConfirmEmail,
    /// A visitor gave this address, which an account has already. There is no link.
    EmailInUse,
    /// The password was changed. There is no link.
    PasswordChanged,
    /// The e-mail address of the account was changed; this mail is for the previous one.
    EmailChanged,
}

/// The function of the program that sends mails.
pub(super) type MailFunction = Box<dyn Fn(Mail) -> MailFuture + Send + Sync>;
pub(super) type MailFuture = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

impl Mail {
    /// Writes a mail. `minutes`: how long the link is valid.
    pub(super) fn new(
        kind: MailKind,
        to: Text,
        name: Text,
        link: Option<String>,
        minutes: u64,
    ) -> Self {
        let (subject, first, last) = match kind {
            MailKind::ResetPassword => (
                "Set a new password",
                "You, or somebody else, asked for a new password. Open this link to set one:",
                "If you did not ask for it, ignore this mail: your password stays as it is.",
            ),
            MailKind::ConfirmEmail => (
                "Confirm your e-mail address",
                "Open this link to confirm that this is your e-mail address:",
                "If you did not give this address, ignore this mail.",
            ),
            MailKind::EmailInUse => (
                "Your e-mail address was given again",
                "A visitor gave your e-mail address, which your account has already.",
                "If it was you, log in with your existing account. If not, ignore this mail.",
            ),
            MailKind::PasswordChanged => (
                "Your password was changed",
                "The password of your account was changed, and all other sessions were ended.",
                "If it was not you, set a new password at once.",
            ),
            MailKind::EmailChanged => (
                "Your e-mail address was changed",
                "The e-mail address of your account was changed. This is the last mail to this one.",
                "If it was not you, write to the people who run this site.",
            ),
        };
        let mut text = format!("Hello {name},\n\n{first}\n");
        if let Some(link) = &link {
            // Writing into a String cannot fail.
            let _ = write!(text, "\n{link}\n\nThe link is valid for {minutes} minutes.\n");
        }
        let _ = write!(text, "\n{last}\n");
        Self { kind, to, name, link, subject: subject.to_owned(), text }
    }
}

/// Without the link and the text, which are secret.
impl std::fmt::Debug for Mail {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Mail")
            .field("kind", &self.kind)
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}
