//! Changes of an account by its user: password, e-mail address, preferences, sessions, removal.

use serde_json::{Map, Value};

use super::account_name::check_email;
use super::account_row::AccountRow;
use super::denial::Denial;
use super::mail::MailKind;
use super::signed_link::{LinkPurpose, SignedLink};
use super::throttle::Subject;
use super::visit::Visit;
use crate::audit;
use crate::sessions::end_sessions;
use crate::store::{Id, RowId, Time, Transaction};
use crate::text::Text;
use crate::visitor_message::{AccountMessage, VisitorMessage};

/// The most bytes of all preferences, as JSON.
const MAX_PREFERENCES: usize = 4096;

impl Visit {
    /// Sets a new password and ends all other sessions of the user.
    pub(super) async fn change_password(&self, current: &str, new: &str) -> Result<(), Denial> {
        let row = self.verify_again(current).await?;
        reject_declared(&row)?;
        self.check_new_password(&row, new)?;
        let hash = self.directory.pool().hash(self.block, new).await?;
        self.store_password(&row, hash, self.session.row_id(), "by the user").await?;
        self.tell_password_changed(&row);
        Ok(())
    }

    /// Sends a link by which the owner of an e-mail address sets a new password. The response does
    /// not depend on whether the address exists.
    pub(super) fn forgot_password(&self, email: &str) -> Result<(), Denial> {
        let directory = &self.directory;
        if !self.can_mail() {
            return Err(Denial::Forbidden(AccountMessage::NoMail {}));
        }
        let email =
            check_email(email.trim()).map_err(|reason| Denial::of_field("email", reason))?;
        self.attempt(&[Subject::MailFrom(self.block)])?;
        let row = AccountRow::by_email(&directory.now(), &email);
        let Some((row, to)) = row.and_then(|row| row.email.clone().map(|to| (row, to))) else {
            return Ok(());
        };
        // The owner of the address cannot be flooded with mails.
        let is_throttled = directory.throttle.attempt(&[Subject::Mail(&to)], self.now).is_err();
        if !is_throttled && !row.is_blocked && !row.is_declared {
            let link = self.link(&row, LinkPurpose::Reset, Vec::new());
            self.send(MailKind::ResetPassword, &to, &row.name, link);
        }
        Ok(())
    }

    /// The account of a link that sets a new password.
    pub(super) fn reset(&self, text: &str) -> Result<AccountRow, Denial> {
        let found = || {
            let link = SignedLink::parse(text, LinkPurpose::Reset)?;
            let row: AccountRow = self.directory.now().get(Id::of(link.account()))?;
            link.verify(self.directory.keys()?, self.now, row.hash.as_bytes())?;
            (!row.is_blocked && !row.is_declared).then_some(row)
        };
        found().ok_or(Denial::DeadLink)
    }

    /// Sets a new password by a link, and ends all sessions of the user.
    pub(super) async fn reset_password(&self, link: &str, new: &str) -> Result<AccountRow, Denial> {
        let row = self.reset(link)?;
        self.check_new_password(&row, new)?;
        let hash = self.directory.pool().hash(self.block, new).await?;
        self.store_password(&row, hash, None, "by a link").await?;
        self.directory.throttle.clear(Subject::AccountAt(&row.key, self.block), self.now);
        self.tell_password_changed(&row);
        Ok(row)
    }

    /// Gives the account a new e-mail address, which counts once its link was opened; an empty one
    /// removes the address.
    pub(super) async fn change_email(&self, current: &str, email: &str) -> Result<(), Denial> {
        let row = self.verify_again(current).await?;
        reject_declared(&row)?;
        let email = email.trim();
        if email.is_empty() {
            if self.directory.settings.requires_email {
                return Err(Denial::of_field("email", VisitorMessage::Missing {}));
            }
            self.amend(&row, "e-mail change", "removed", |row| row.set_email(None)).await?;
            if let Some(old) = &row.email {
                self.send(MailKind::EmailChanged, old, &row.name, None);
            }
            return Ok(());
        }
        let email = check_email(email).map_err(|reason| Denial::of_field("email", reason))?;
        let pending = email.clone();
        self.amend(&row, "e-mail change", "waits for its link", move |row| {
            row.pending_email = Some(pending.clone());
        })
        .await?;
        self.ask_to_confirm(&row, &email);
        Ok(())
    }

    /// Replaces the preferences that `edit` changes.
    pub(super) async fn set_preferences(
        &self,
        edit: impl Fn(&mut Map<String, Value>) + Send + 'static,
    ) -> Result<(), Denial> {
        let id = self.account()?.id;
        let change = self
            .directory
            .store()
            .change::<_, _, Denial>(move |change| edit_preferences(change, id, &edit));
        change.await
    }

    /// Ends one session of the user, or all others.
    pub(super) async fn end_session(
        &self,
        current: &str,
        session: Option<RowId>,
    ) -> Result<(), Denial> {
        self.verify_again(current).await?;
        match session {
            Some(id) => drop(self.session.revoke(id).await?),
            None => drop(self.session.revoke_others().await?),
        }
        Ok(())
    }

    /// Removes the account and ends its sessions.
    pub(super) async fn remove_account(&self, current: &str) -> Result<(), Denial> {
        let row = self.verify_again(current).await?;
        reject_declared(&row)?;
        let (directory, name) = (std::sync::Arc::clone(&self.directory), row.name.clone());
        let change = self.directory.store().change::<_, _, Denial>(move |change| {
            directory.remove(change, &row)?;
            audit::record(change, &name, "account removal", &name, "by the user")?;
            Ok(())
        });
        change.await?;
        self.session.log_out().await?;
        Ok(())
    }

    fn check_new_password(&self, row: &AccountRow, new: &str) -> Result<(), Denial> {
        let (email, host) = (row.email.as_deref(), self.host.as_deref());
        let checked = self.directory.check_password(new, &row.name, email, host);
        checked.map_err(|reason| Denial::of_field("new_password", reason))
    }

    /// Stores a new hash and ends all sessions except one, or all sessions and API tokens, unless the password has changed
    /// meanwhile.
    async fn store_password(
        &self,
        row: &AccountRow,
        hash: String,
        except: Option<RowId>,
        detail: &'static str,
    ) -> Result<(), Denial> {
        let (old, hash) = (row.clone(), Text::from(hash));
        let directory = std::sync::Arc::clone(&self.directory);
        let change = self.directory.store().change::<_, _, Denial>(move |change| {
            let mut row: AccountRow = change.get(old.id).ok_or(Denial::DeadLink)?;
            if row.hash != old.hash {
                return Err(Denial::DeadLink);
            }
            (row.hash, row.password_changed) = (hash.clone(), Time::now());
            change.replace(&row)?;
            match except {
                Some(_) => {
                    end_sessions(change, &row.name, except)?;
                }
                // A forgotten password may be a stolen one.
                None => directory.end_logins(change, &row.name)?,
            }
            audit::record(change, &row.name, "password change", &row.name, detail)?;
            Ok(())
        });
        change.await
    }

    fn tell_password_changed(&self, row: &AccountRow) {
        if let Some(email) = &row.email {
            self.send(MailKind::PasswordChanged, email, &row.name, None);
        }
    }

    async fn amend(
        &self,
        row: &AccountRow,
        action: &'static str,
        detail: &'static str,
        edit: impl Fn(&mut AccountRow) + Send + 'static,
    ) -> Result<(), Denial> {
        let id = row.id;
        let change = self.directory.store().change::<_, _, Denial>(move |change| {
            let mut row: AccountRow = change.get(id).ok_or(Denial::NeedsUser)?;
            edit(&mut row);
            change.replace(&row)?;
            audit::record(change, &row.name, action, &row.name, detail)?;
            Ok(())
        });
        change.await
    }
}

/// Changes the preferences of an account.
pub(super) fn edit_preferences(
    change: &mut Transaction,
    id: Id<AccountRow>,
    edit: &dyn Fn(&mut Map<String, Value>),
) -> Result<(), Denial> {
    let mut row: AccountRow = change.get(id).ok_or(Denial::NeedsUser)?;
    let mut preferences = row.preferences();
    edit(&mut preferences);
    row.preferences = Value::Object(preferences).to_string();
    if row.preferences.len() > MAX_PREFERENCES {
        let reason = AccountMessage::PreferencesLong { most: MAX_PREFERENCES };
        return Err(Denial::of_field("preferences", reason));
    }
    change.replace(&row)?;
    Ok(())
}

fn reject_declared(row: &AccountRow) -> Result<(), Denial> {
    if row.is_declared {
        return Err(Denial::Forbidden(AccountMessage::Declared {}));
    }
    Ok(())
}
