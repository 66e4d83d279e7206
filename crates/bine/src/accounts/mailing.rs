//! The throttle and the mails of one client's request.

use bine_log as log;

use super::account_row::AccountRow;
use super::denial::Denial;
use super::mail::{Mail, MailKind};
use super::signed_link::{LinkPurpose, SignedLink};
use super::throttle::Subject;
use super::visit::Visit;
use crate::percent_encoding::percent_encode;
use crate::text::Text;

impl Visit {
    /// Counts a try of all these subjects, unless a subject must wait.
    pub(super) fn attempt(&self, subjects: &[Subject<'_>]) -> Result<(), Denial> {
        self.directory.throttle.attempt(subjects, self.now).map_err(|wait| {
            self.directory.note_throttled(self.block, self.now);
            Denial::from(wait)
        })
    }

    /// Whether mails can be sent or, in development, logged.
    pub(super) fn can_mail(&self) -> bool {
        (self.directory.settings.mail.is_some() || self.is_development) && self.base().is_some()
    }

    /// The address before the path of a link in a mail. The host of a request is taken only if no
    /// attacker can choose it.
    fn base(&self) -> Option<String> {
        if let Some(address) = &self.directory.settings.address {
            return Some(address.clone());
        }
        let is_safe = |host: &&str| self.is_development || self.directory.trusts_host(host);
        let host = self.host.as_deref().filter(is_safe)?;
        Some(format!("{}://{host}", if self.is_secure { "https" } else { "http" }))
    }

    /// A link of this purpose for an account.
    pub(super) fn link(
        &self,
        row: &AccountRow,
        purpose: LinkPurpose,
        extra: Vec<u8>,
    ) -> Option<String> {
        let settings = &self.directory.settings;
        let expires = self.now + settings.link_lifetime;
        let link = SignedLink { purpose, account: row.id.row(), expires, extra };
        let context = if purpose == LinkPurpose::Reset { row.hash.as_bytes() } else { b"" };
        let text = link.text(self.directory.keys()?, self.now, context);
        let page = match purpose {
            LinkPurpose::Reset => "reset-password",
            _ => "confirm-email",
        };
        Some(format!("{}{}/{page}/{}", self.base()?, settings.prefix, percent_encode(&text)))
    }

    /// Sends a mail in the background; in development without a function for it, logs its link.
    pub(super) fn send(&self, kind: MailKind, to: &Text, name: &Text, link: Option<String>) {
        let settings = &self.directory.settings;
        let minutes = settings.link_lifetime.div_ceil(60);
        let mail = Mail::new(kind, to.clone(), name.clone(), link, minutes);
        if settings.mail.is_none() && self.is_development {
            let link = mail.link.as_deref().unwrap_or("(no link)");
            log::notice(format_args!("a mail to {to}: {}: {link}", mail.subject));
        }
        self.directory.deliver(mail);
    }
}
