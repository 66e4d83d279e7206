//! The client of a request to accounts: its session, its address, and the device that it names.

use std::sync::Arc;

use bine_server::{AddressBlock, ClientAddress};

use super::denial::Denial;
use super::directory::AccountDirectory;
use super::signed_link::{LinkPurpose, SignedLink};
use crate::access_guard::AccessGuard;
use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
use crate::error::Error;
use crate::languages::VisitorWords;
use crate::random_token::random_token;
use crate::service::Caller;
use crate::sessions::Session;
use crate::store::{RowId, Time};
use crate::visitor_message::{AccountMessage, MessageText, VisitorMessage};

/// The client of a request, and the accounts of the program.
pub(super) struct Visit {
    pub(super) directory: Arc<AccountDirectory>,
    pub(super) session: Session,
    /// Knows which names have rights; `None`: the program has no rights.
    guard: Option<Arc<dyn AccessGuard>>,
    pub(super) block: AddressBlock,
    pub(super) is_secure: bool,
    pub(super) host: Option<String>,
    /// The value of the cookie of a known device.
    pub(super) device: Option<String>,
    pub(super) is_development: bool,
    /// The words for a page; English for a service, whose response translates its error.
    words: VisitorWords,
    /// The time in seconds since 1970.
    pub(super) now: u64,
}

/// Seconds for which a device is known after a log-in.
const DEVICE_LIFETIME: u64 = 90 * 24 * 60 * 60;

impl Visit {
    fn new(
        directory: Arc<AccountDirectory>,
        session: Session,
        peer: ClientAddress,
        cookies: Option<&str>,
    ) -> Self {
        let name = device_cookie(peer.is_secure());
        let pairs = cookies.unwrap_or_default().split(';');
        let mut pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
        let device = pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
        Self {
            directory,
            session,
            guard: None,
            block: peer.block(),
            is_secure: peer.is_secure(),
            host: None,
            device,
            is_development: false,
            words: VisitorWords::ENGLISH,
            now: Time::now().unix(),
        }
    }

    /// The caller of a service.
    ///
    /// # Errors
    ///
    /// The program has no accounts.
    pub(super) fn of_caller(caller: &Caller) -> Result<Self, Error> {
        let directory = caller.state::<AccountDirectory>()?.0;
        let (peer, cookies) = (caller.client_address(), caller.header("cookie"));
        let visit = Self::new(directory, caller.session(), peer, cookies);
        // In absolute form, the field `Host` may differ from the host that the server has checked.
        let host = caller.authority().map(str::to_owned);
        let app = caller.app();
        let (guard, is_development) = (app.guard.clone(), app.templates.shows_causes());
        Ok(Self { guard, host, is_development, ..visit })
    }

    /// The text of a message in the words for the visitor.
    pub(super) fn say(&self, message: AccountMessage) -> String {
        self.words.say(&message.into())
    }

    /// The texts of messages in the words for the visitor, for the content of a page.
    pub(super) fn words(&self) -> impl Fn(AccountMessage) -> String + Send + use<> {
        let words = self.words.clone();
        move |message| words.say(&message.into())
    }

    /// A text in the words for the visitor.
    pub(super) fn text(&self, text: &MessageText) -> String {
        self.words.text(text).into_owned()
    }

    /// A sentence that begins with the label of a field.
    pub(super) fn sentence(&self, label: &str, detail: &MessageText) -> String {
        let (subject, detail) = (label.to_owned(), self.text(detail));
        self.words.say(&VisitorMessage::Argument { subject, detail }) + "."
    }

    /// Whether a rule or a group names this user, who may have no account yet.
    pub(super) fn has_rights(&self, name: &str) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.names_user(name))
    }

    /// Refuses a request with an API token: a token that leaked must not change how its user logs
    /// in, nor test passwords.
    ///
    /// # Errors
    ///
    /// The request has an API token.
    pub(super) fn refuse_tokens(&self) -> Result<(), Denial> {
        if self.session.is_by_credential() {
            return Err(Denial::Forbidden(AccountMessage::NotByToken {}));
        }
        Ok(())
    }

    /// The number of this device, if its cookie says that a user of this account has logged in.
    pub(super) fn known_device(&self, account: RowId) -> Option<[u8; 8]> {
        let link = SignedLink::parse(self.device.as_deref()?, LinkPurpose::Device)?;
        let link = link.verify(self.directory.keys()?, self.now, b"")?;
        (link.account == account).then(|| link.extra.first_chunk().copied())?
    }

    /// The `Set-Cookie` field that makes this device known to the account.
    pub(super) fn device_field(&self, account: RowId) -> Option<String> {
        let number = self.known_device(account);
        let extra = number.map_or_else(|| random_token().into_bytes()[..8].to_vec(), Vec::from);
        let expires = self.now + DEVICE_LIFETIME;
        let link = SignedLink { purpose: LinkPurpose::Device, account, expires, extra };
        let value = link.text(self.directory.keys()?, self.now, b"");
        let (name, secure) =
            (device_cookie(self.is_secure), if self.is_secure { "; Secure" } else { "" });
        Some(format!(
            "{name}={value}; Path=/; Max-Age={DEVICE_LIFETIME}; HttpOnly; SameSite=Lax{secure}"
        ))
    }
}

/// With TLS, the prefix makes browsers reject the cookie from other hosts of the domain.
const fn device_cookie(is_secure: bool) -> &'static str {
    if is_secure { "__Host-device" } else { "device" }
}

impl FromRequest for Visit {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let session = Session::from_request(request, name)?;
        let directory = request.app.states.find_shared::<AccountDirectory>();
        let directory = directory.ok_or_else(|| {
            Rejection::invalid(name, "needs accounts: add `.accounts(..)` to the app")
        })?;
        let (head, peer) = (&request.incoming.head, request.incoming.peer);
        let visit = Self::new(directory, session, peer, head.field_text("cookie"));
        let host = head.authority().map(str::to_owned);
        let (guard, is_development) =
            (request.app.guard.clone(), request.app.templates.shows_causes());
        let languages = request.app.templates.languages.as_ref();
        let words = VisitorWords::of(languages, Some(request.incoming));
        Ok(Self { guard, host, is_development, words, ..visit })
    }

    fn needs(needs: &mut Needs) {
        Session::needs(needs);
        needs.require::<AccountDirectory>(
            "needs accounts, and the program has none; add `.accounts(..)` to the app",
        );
    }
}
