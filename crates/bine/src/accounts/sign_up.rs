//! Sign-ups, and the confirmation of e-mail addresses.

use super::account_name::{check_email, check_name};
use super::account_row::AccountRow;
use super::denial::Denial;
use super::mail::MailKind;
use super::settings::SignUp;
use super::signed_link::{LinkPurpose, SignedLink};
use super::throttle::Subject;
use super::visit::Visit;
use crate::audit;
use crate::random_token::random_token;
use crate::sessions::keys::Keys;
use crate::store::{Id, RowId, Time};
use crate::text::Text;
use crate::visitor_message::{AccountMessage, VisitorMessage};

/// The fields of a sign-up.
#[derive(Clone, Default)]
pub(super) struct SignUpFields {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) password: String,
    pub(super) invitation: String,
}

/// Seconds for which an invitation is valid.
pub(super) const INVITATION_LIFETIME: u64 = 7 * 24 * 60 * 60;

impl Visit {
    /// Creates an account and logs its user in. A name that exists is reported: a visitor could not
    /// choose a name otherwise. An e-mail address that exists is not: its owner gets a mail.
    pub(super) async fn sign_up(&self, fields: &SignUpFields) -> Result<AccountRow, Denial> {
        self.refuse_tokens()?;
        let directory = &self.directory;
        let invitation = self.invitation(&fields.invitation)?;
        let email = Some(fields.email.trim()).filter(|email| !email.is_empty());
        let (name, email) = self.check_sign_up(fields, email)?;
        self.attempt(&[Subject::SignUp(self.block)])?;
        let hash = directory.pool().hash(self.block, &fields.password).await?;
        let row = AccountRow {
            pending_email: email.clone(),
            invitation: invitation.map(Vec::from),
            ..AccountRow::new(&name, hash, Time::now())
        };
        let (new, detail) = (row.clone(), format!("from {}", self.block));
        let inserted = directory.store().change::<_, _, Denial>(move |change| {
            if AccountRow::find(change, &new.name).is_some() {
                return Err(taken());
            }
            let is_used = new.invitation.is_some()
                && change.one(AccountRow::BY_INVITATION, new.invitation.clone()).is_some();
            if is_used {
                return Err(Denial::DeadLink);
            }
            let id = change.insert(new.clone())?;
            audit::record(change, &new.name, "account creation", &new.name, &detail)?;
            Ok(id)
        });
        let row = AccountRow { id: inserted.await?, ..row };
        if let Some(email) = &email {
            self.ask_to_confirm(&row, email);
        }
        self.begin_session(&row, false).await?;
        Ok(row)
    }

    /// Checks the fields of a sign-up.
    fn check_sign_up(
        &self,
        fields: &SignUpFields,
        email: Option<&str>,
    ) -> Result<(Text, Option<Text>), Denial> {
        let mut invalid = Vec::new();
        let name = check_name(fields.name.trim());
        let email = email.map(check_email).transpose();
        match &name {
            // A name with rights and no account is the operator's to give: `bine user add`.
            Ok(name)
                if AccountRow::find(&self.directory.now(), name).is_some()
                    || self.has_rights(name) =>
            {
                // So that no client lists the existing names.
                self.attempt(&[Subject::SignUp(self.block)])?;
                invalid.push(("name", VisitorMessage::Taken {}.into()));
            }
            Ok(_) => {}
            Err(reason) => invalid.push(("name", reason.clone().into())),
        }
        match &email {
            Ok(None) if self.directory.settings.requires_email => {
                invalid.push(("email", VisitorMessage::Missing {}.into()));
            }
            Ok(_) => {}
            Err(reason) => invalid.push(("email", reason.clone().into())),
        }
        let host = self.host.as_deref();
        let checked = self.directory.check_password(
            &fields.password,
            &fields.name,
            Some(&fields.email),
            host,
        );
        invalid.extend(checked.err().map(|reason| ("password", reason.into())));
        match (name, email) {
            (Ok(name), Ok(email)) if invalid.is_empty() => Ok((name, email)),
            _ => Err(Denial::Invalid(invalid)),
        }
    }

    /// The number of the invitation that a sign-up needs; `None`: not needed.
    fn invitation(&self, text: &str) -> Result<Option<[u8; 16]>, Denial> {
        match self.directory.settings.sign_up {
            SignUp::Open => return Ok(None),
            SignUp::Closed => return Err(Denial::Forbidden(AccountMessage::Closed {})),
            SignUp::ByInvitation if text.is_empty() => {
                return Err(Denial::Forbidden(AccountMessage::NeedsInvitation {}));
            }
            SignUp::ByInvitation => {}
        }
        let link = SignedLink::parse(text, LinkPurpose::Invite);
        let link = link.zip(self.directory.keys()).and_then(|(link, keys)| {
            let link = link.verify(keys, self.now, b"")?;
            link.extra.first_chunk().copied()
        });
        link.map(Some).ok_or(Denial::DeadLink)
    }

    /// Sends a link to an address that a user has given; to the owner of the address, if it belongs
    /// to another account.
    pub(super) fn ask_to_confirm(&self, row: &AccountRow, email: &Text) {
        let directory = &self.directory;
        let is_throttled = directory.throttle.attempt(&[Subject::Mail(email)], self.now).is_err();
        if is_throttled || !self.can_mail() {
            return;
        }
        match AccountRow::by_email(&directory.now(), email) {
            Some(owner) => {
                let to = owner.email.as_ref().unwrap_or(email);
                self.send(MailKind::EmailInUse, to, &owner.name, None);
            }
            None => {
                let extra = email.as_bytes().to_vec();
                let link = self.link(row, LinkPurpose::Confirm, extra);
                self.send(MailKind::ConfirmEmail, email, &row.name, link);
            }
        }
    }

    /// Confirms the e-mail address of a link.
    pub(super) async fn confirm_email(&self, text: &str) -> Result<AccountRow, Denial> {
        let (row, email) = self.confirmation(text)?;
        let (id, confirmed) = (row.id, email.clone());
        let change = self.directory.store().change::<_, _, Denial>(move |change| {
            let mut row: AccountRow = change.get(id).ok_or(Denial::DeadLink)?;
            if row.pending_email.as_ref() != Some(&confirmed) {
                return Err(Denial::DeadLink);
            }
            if AccountRow::by_email(change, &confirmed).is_some_and(|other| other.id != id) {
                return Err(Denial::Forbidden(AccountMessage::EmailInUse {}));
            }
            row.set_email(Some(confirmed.clone()));
            change.replace(&row)?;
            audit::record(change, &row.name, "e-mail change", &row.name, "confirmed by its link")?;
            Ok(())
        });
        change.await?;
        if let Some(old) = row.email.as_ref().filter(|old| **old != email) {
            self.send(MailKind::EmailChanged, old, &row.name, None);
        }
        Ok(row)
    }

    /// The account and the address of a link that confirms it.
    pub(super) fn confirmation(&self, text: &str) -> Result<(AccountRow, Text), Denial> {
        let found = || {
            let link = SignedLink::parse(text, LinkPurpose::Confirm)?;
            let link = link.verify(self.directory.keys()?, self.now, b"")?;
            let row: AccountRow = self.directory.now().get(Id::of(link.account))?;
            let email = Text::from(str::from_utf8(&link.extra).ok()?);
            (row.pending_email.as_ref() == Some(&email)).then_some((row, email))
        };
        found().ok_or(Denial::DeadLink)
    }
}

/// An invitation for one sign-up.
pub(super) fn invitation(keys: &Keys, now: u64) -> String {
    let random = random_token();
    let extra = random.as_bytes()[..16].to_vec();
    let (account, expires) = (RowId::from_number(0), now + INVITATION_LIFETIME);
    let link = SignedLink { purpose: LinkPurpose::Invite, account, expires, extra };
    link.text(keys, now, b"")
}

fn taken() -> Denial {
    Denial::of_field("name", VisitorMessage::Taken {})
}
