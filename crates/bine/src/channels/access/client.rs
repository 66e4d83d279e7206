//! Identifies the client of a request, and checks what it may do.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bine_http::{Head, Status};
use bine_log as log;
use bine_push::{Draft, Publisher};
use bine_server::{AddressBlock, ClientAddress, Incoming};
use ring::digest;

use super::ask::{GrantFuture, QUERY, cookie, login_of, token_in_query};
use super::denied::{Denied, unauthorized};
use super::follow_rights::{FollowRights, FollowedChannel, user_of};
use super::grant::{ActiveGrant, ChannelAction, Grant, Issued, Rules};
use super::quota::{Charge, FIRST_GROUP, HoldRejection, MemoryQuotas, QuotaTable};
use super::scope::{ChannelScope, ChannelScopes};
use super::token::ValidatedToken;
use super::{AGE, Access};
use crate::Error;
use crate::access_guard::AccessGuard;
use crate::arguments::{Needs, Rejection, RequestParts};
use crate::channels::clock::now;
use crate::channels::presence::PresenceTracker;
use crate::credentials::TOKEN_PREFIX;
use crate::sessions::Login;
use crate::text::Text;
use crate::user_name::UserName;

/// Maximum cached grants. Beyond that, some are evicted.
const MAX_CACHED: usize = 50_000;

/// The access configuration, with a cache of grants.
pub(crate) struct AccessControl {
    access: Access,
    /// Decides about the channels that a rule of rights matches; `None`: the program has no rights.
    guard: Option<Arc<dyn AccessGuard>>,
    /// The parts of the program that have rules for their own channels.
    scopes: ChannelScopes,
    quotas: Arc<QuotaTable>,
    presence_tracker: Arc<PresenceTracker>,
    pub(in crate::channels) memory_quotas: MemoryQuotas,
    cache: Mutex<HashMap<CredentialsHash, CachedGrant>>,
}

/// A hash of a client's credentials. Clients with other credentials cannot match it.
type CredentialsHash = [u8; 32];

/// The cached result for some credentials.
#[derive(Clone)]
struct CachedGrant {
    session: Option<Arc<ActiveGrant>>,
    /// Why the token was rejected.
    fault: Option<Arc<str>>,
    /// Whether the result includes the access function's answer.
    includes_function: bool,
    /// The expiry in milliseconds since 1970.
    until: u64,
}

/// The client of a request.
pub(crate) struct ChannelClient<'g> {
    access_control: &'g Arc<AccessControl>,
    block: AddressBlock,
    session: Option<Arc<ActiveGrant>>,
    fault: Option<Arc<str>>,
    /// The login of the session, if any.
    login: Option<Login>,
    /// The user that rights apply to.
    user: Option<Text>,
    /// The channels that the client may follow, as far as they were checked, in a program with
    /// rights.
    followed: Mutex<Vec<FollowedChannel>>,
    /// The credentials for the access function, if it was not called yet.
    pending_credentials: Option<CredentialsHash>,
    /// The part of the program that must be loaded before its rules decide.
    unloaded: Mutex<Option<Arc<dyn ChannelScope>>>,
}

/// A client whose interaction outlasts the request.
pub(crate) struct OwnedClient {
    access_control: Arc<AccessControl>,
    block: AddressBlock,
    session: Option<Arc<ActiveGrant>>,
    /// The user that rights apply to.
    user: Option<Text>,
    /// The session name for presence.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) hold: HoldGuard,
}

/// A reserved hold. It is released on drop, unless a suspended response takes it over.
#[derive(Default)]
pub(crate) struct HoldPermit {
    /// Set if the hold is counted.
    quotas: Option<Arc<QuotaTable>>,
    number: AtomicU32,
}

/// A hold of a task. Dropping it releases the hold.
pub(crate) struct HoldGuard {
    quotas: Arc<QuotaTable>,
    number: u32,
    /// The number of followed channels.
    channels: usize,
}

/// A call of the access function for a client.
pub(crate) struct AccessQuery {
    access_control: Arc<AccessControl>,
    credentials: CredentialsHash,
    session: Option<Arc<ActiveGrant>>,
    fault: Option<Arc<str>>,
    login: Option<Login>,
    asked_at: u64,
    issued: Issued,
}

impl AccessControl {
    /// # Errors
    ///
    /// The access configuration is invalid.
    pub(crate) fn new(
        access: Access,
        guard: Option<Arc<dyn AccessGuard>>,
        quotas: Arc<QuotaTable>,
        presence_tracker: Arc<PresenceTracker>,
    ) -> Result<Self, String> {
        if let Some(fault) = access.fault() {
            return Err(format!("who may reach channels: {fault}"));
        }
        let longest = access.tokens.as_ref().map(|tokens| tokens.longest).unwrap_or_default();
        quotas.configure(access.client_limits, longest);
        if let Some(guard) = &guard {
            quotas.guard_by(guard);
        }
        let memory_quotas = access.client_limits.memory_quotas();
        let (scopes, cache) = (ChannelScopes::default(), Mutex::default());
        Ok(Self { access, guard, scopes, quotas, presence_tracker, memory_quotas, cache })
    }

    /// Adds the parts of the program that have rules for their own channels.
    pub(crate) fn with_scopes(self, scopes: ChannelScopes) -> Self {
        Self { scopes, ..self }
    }

    /// Whether only parts of the program with rules of their own have channels for clients.
    pub(crate) fn is_only_for_scopes(&self) -> bool {
        !self.has_access() && self.guard.is_none()
    }

    /// Whether a channel belongs to a part of the program with its own rules.
    pub(crate) fn is_in_scope(&self, channel: &str) -> bool {
        self.scopes.of(channel).is_some()
    }

    /// The number of parts of the program that a request may have to load.
    pub(crate) fn scopes(&self) -> usize {
        self.scopes.count()
    }

    /// Whether any client may do anything.
    pub(crate) fn is_open(&self) -> bool {
        self.has_access() || self.guard.is_some() || !self.scopes.are_none()
    }

    /// Whether the program's own rules permit anything.
    fn has_access(&self) -> bool {
        let Access { rules, users, tokens, function, .. } = &self.access;
        !rules.are_none() || !users.are_none() || tokens.is_some() || function.is_some()
    }

    /// The requirements of the access function's arguments for the program.
    pub(crate) fn needs(&self) -> Needs {
        self.access.function.as_ref().map(super::ErasedAccessFunction::needs).unwrap_or_default()
    }

    /// The allowed origin of a request, if any.
    pub(crate) fn origin_of(&self, head: &Head<'_>) -> Option<Arc<str>> {
        self.access.origin_of(head)
    }

    /// Identifies the client of a request.
    pub(crate) fn recognize(self: &Arc<Self>, request: &Incoming<'_>) -> ChannelClient<'_> {
        let block = request.peer.block();
        let mut client = ChannelClient {
            access_control: self,
            block,
            session: None,
            fault: None,
            login: None,
            user: None,
            followed: Mutex::default(),
            pending_credentials: None,
            unloaded: Mutex::default(),
        };
        let Access { users, tokens, function, .. } = &self.access;
        if function.is_some() || self.depends_on_login() || !users.are_none() {
            client.login = login_of(request);
        }
        if self.guard.is_some() {
            client.user = user_of(request);
        }
        let token = tokens
            .as_ref()
            .and_then(|tokens| Some((tokens, token(&request.head, &tokens.cookie)?)));
        if token.is_none() && function.is_none() && client.login.is_none() {
            return client;
        }
        let credentials = match (function, token, &client.login) {
            (None, Some((_, token)), None) => hash(&[token.as_bytes()]),
            (_, _, login) => credentials(request, login.as_ref()),
        };
        let now = now();
        let known = match self.known(&credentials, now) {
            Some(known) => known,
            None => {
                let taken = token.map(|(tokens, token)| tokens.read(token, now));
                let known = self.evaluate(taken, client.login.as_ref(), now);
                if known.session.is_some() {
                    self.remember(credentials, known.clone(), now);
                }
                known
            }
        };
        client.pending_credentials =
            (function.is_some() && !known.includes_function).then_some(credentials);
        (client.session, client.fault) = (known.session, known.fault);
        client
    }

    /// Evaluates the rules for users and the token, without the access function.
    fn evaluate(
        &self,
        token: Option<Result<ValidatedToken, String>>,
        login: Option<&Login>,
        now: u64,
    ) -> CachedGrant {
        let (mut session, mut fault) = (None, None);
        match token {
            None => {}
            Some(Err(reason)) => fault = Some(reason.into()),
            Some(Ok(taken)) => {
                session = Some(ActiveGrant::new(taken.grant, Issued::At(taken.issued)));
                if session.as_ref().is_some_and(|session| self.quotas.has_revoked(session)) {
                    (session, fault) = (None, Some("it was revoked".into()));
                }
            }
        }
        let mut until = u64::MAX;
        let login = login.filter(|_| !self.access.users.are_none() || self.depends_on_login());
        // Logins from before names were validated may have an invalid one, which gets no grant.
        if let Some((login, user)) =
            login.and_then(|login| Some((login, UserName::parse(&login.user).ok()?)))
        {
            let issued = Issued::Behind(self.quotas.revocations());
            let rules = self.access.users.of_user(&user);
            let grant = Grant { rules, ..Grant::to(&user) };
            let own = match session {
                Some(token) => token.and(grant, issued),
                None => ActiveGrant::new(grant, issued),
            };
            session = Some(own.with_login(Some(login.clone())));
            until = now + AGE.as_millis() as u64;
        }
        let session = session.map(Arc::new);
        let until = session.as_ref().map_or(0, |session| session.grant_end()).min(until);
        CachedGrant { session, fault, includes_function: false, until }
    }

    /// Whether rules outside of `access` may depend on the login of a client.
    fn depends_on_login(&self) -> bool {
        self.guard.is_some() || !self.scopes.are_none()
    }

    fn known(&self, credentials: &CredentialsHash, now: u64) -> Option<CachedGrant> {
        let known = self.cache().get(credentials).filter(|known| known.until > now).cloned()?;
        let is_revoked = known.session.as_ref().is_some_and(|own| self.quotas.has_revoked(own));
        Some(known).filter(|_| !is_revoked)
    }

    fn remember(&self, credentials: CredentialsHash, known: CachedGrant, now: u64) {
        let mut cache = self.cache();
        if cache.len() >= MAX_CACHED && !cache.contains_key(&credentials) {
            cache.retain(|_, known| known.until > now);
            if cache.len() >= MAX_CACHED {
                // Evicts every second entry: finding the oldest costs more than evaluating some
                // again.
                let mut is_kept = false;
                cache.retain(|_, _| {
                    is_kept = !is_kept;
                    is_kept
                });
            }
        }
        cache.insert(credentials, known);
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<CredentialsHash, CachedGrant>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChannelClient<'_> {
    /// Checks whether the client may perform an action on a channel.
    ///
    /// # Errors
    ///
    /// The client may not; the error is its response.
    pub(crate) fn check(&self, action: ChannelAction, channel: &str) -> Result<(), Denied> {
        if action != ChannelAction::Follow
            && self.access_control.presence_tracker.is_event_channel(channel)
        {
            let reason =
                format!("`{channel}` tells who comes and goes: it is followed, and nothing else");
            return Err(Denied { status: Status::FORBIDDEN, field: None, reason });
        }
        if let Some(guard) = &self.access_control.guard {
            let decided = guard.check_channel(self.user.as_deref(), action.into(), channel);
            if decided == Some(false) {
                return Err(self.denied_by_rule(action, channel));
            }
            if action == ChannelAction::Follow {
                let followed =
                    FollowedChannel { name: channel.into(), is_by_rule: decided.is_some() };
                self.followed().push(followed);
            }
            if decided.is_some() {
                return Ok(());
            }
        }
        let permit = |rules: &Rules| rules.permit(action, channel);
        if self.access_control.access.permits(self.session.as_deref(), permit)
            || self.is_permitted_by_scope(action, channel)
        {
            return Ok(());
        }
        Err(self.denied(action, Some(channel)))
    }

    /// Whether the part of the program permits the action to which the channel belongs.
    fn is_permitted_by_scope(&self, action: ChannelAction, channel: &str) -> bool {
        let Some(scope) = self.access_control.scopes.of(channel) else { return false };
        match scope.rules() {
            Some(rules) => rules.permits(action, channel, self.login_user().as_ref()),
            None => {
                *self.unloaded() = Some(Arc::clone(scope));
                false
            }
        }
    }

    /// The part of the program that must be loaded before its rules decide about this client.
    pub(crate) fn take_unloaded(&self) -> Option<Arc<dyn ChannelScope>> {
        self.unloaded().take()
    }

    fn unloaded(&self) -> MutexGuard<'_, Option<Arc<dyn ChannelScope>>> {
        self.unloaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user of the login on which the client's grant depends.
    fn login_user(&self) -> Option<UserName> {
        let login = self.session.as_ref()?.login.as_ref()?;
        UserName::parse(&login.user).ok()
    }

    /// The verified name, if any.
    pub(crate) fn subject(&self) -> Option<&str> {
        self.session.as_ref()?.subject().map(|subject| &**subject)
    }

    /// Checks whether the client may perform an action on any channel.
    ///
    /// # Errors
    ///
    /// It may not; the error is its response.
    pub(crate) fn check_some(&self, action: ChannelAction) -> Result<(), Denied> {
        let permit = |rules: &Rules| rules.permit_some(action);
        let guard = self.access_control.guard.as_ref();
        if self.pending_credentials.is_some()
            || guard.is_some_and(|guard| {
                guard.may_use_some_channel(self.user.as_deref(), action.into())
            })
            || self.access_control.access.permits(self.session.as_deref(), permit)
            || self.access_control.scopes.may_permit(action, self.login_user().is_some())
        {
            return Ok(());
        }
        Err(self.denied(action, None))
    }

    /// The allowed origin of the requesting page, if any.
    pub(crate) fn origin_of(&self, head: &Head<'_>) -> Option<Arc<str>> {
        self.access_control.origin_of(head)
    }

    /// Reserves a hold.
    ///
    /// # Errors
    ///
    /// A limit of holds is reached.
    pub(crate) fn reserve_hold(&self) -> Result<HoldPermit, Denied> {
        let session = self.held_session();
        HoldPermit::reserve(&self.access_control.quotas, self.block, session.as_ref())
    }

    /// The grant of a hold. In a program with rights each hold has one of its own.
    fn held_session(&self) -> Option<Arc<ActiveGrant>> {
        let Some(guard) = &self.access_control.guard else { return self.session.clone() };
        let followed = self.followed().clone();
        let rights = FollowRights::new(guard, self.user.clone(), followed);
        let issued = Issued::Behind(self.access_control.quotas.revocations());
        Some(Arc::new(ActiveGrant::following(self.session.as_deref(), issued, rights)))
    }

    fn followed(&self) -> MutexGuard<'_, Vec<FollowedChannel>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges messages to the client's rate limits.
    ///
    /// # Errors
    ///
    /// A rate limit is exceeded.
    pub(crate) fn charge_messages(&self, messages: usize) -> Result<(), Denied> {
        self.charge(Charge::Messages(messages))
    }

    /// Charges a join event to the client's rate limits.
    ///
    /// # Errors
    ///
    /// The rate limit for join events is exceeded.
    pub(crate) fn charge_join(&self) -> Result<(), Denied> {
        self.charge(Charge::Join)
    }

    /// For a client without a verified name: its address block, and how many such clients of the
    /// block may be listed as present.
    pub(crate) fn address_quota(&self) -> Option<(AddressBlock, u32)> {
        let most = self.access_control.quotas.client_limits().holds_of(self.block);
        self.subject().is_none().then_some((self.block, most))
    }

    /// The publisher whose memory quota the client's channels and messages use.
    pub(crate) fn publisher(&self) -> Publisher {
        let subject = self.session.as_ref().and_then(|session| session.subject());
        self.access_control.memory_quotas.publisher(subject, self.block)
    }

    fn charge(&self, paid: Charge) -> Result<(), Denied> {
        let quotas = &self.access_control.quotas;
        let charged = quotas.charge(self.block, self.session.as_ref(), paid, Instant::now());
        charged.map_err(Into::into)
    }

    /// Checks that the client's permissions are complete.
    ///
    /// # Errors
    ///
    /// The access function must be called first.
    pub(crate) fn check_all_known(&self) -> Result<(), Denied> {
        if self.needs_function() { Err(self.denied(ChannelAction::Follow, None)) } else { Ok(()) }
    }

    /// Checks and charges a batch as a whole.
    ///
    /// # Errors
    ///
    /// The client may not publish in one of the channels, or exceeds a rate limit.
    pub(crate) fn check_batch(&self, messages: &[Draft]) -> Result<(), Denied> {
        for channel in messages.iter().flat_map(|message| &message.channels) {
            self.check(ChannelAction::Publish, channel)?;
        }
        self.charge_messages(messages.len())
    }

    /// Reserves a hold for an interaction that outlasts the request, with a name for presence.
    ///
    /// # Errors
    ///
    /// A limit of holds is reached.
    pub(crate) fn detach(&self, name: Option<Arc<str>>) -> Result<OwnedClient, Denied> {
        let (access_control, session) = (Arc::clone(self.access_control), self.held_session());
        let quotas = &access_control.quotas;
        let hold = HoldPermit::reserve(quotas, self.block, session.as_ref())?.into_guard(quotas);
        let user = self.user.clone();
        Ok(OwnedClient { access_control, block: self.block, session, user, name, hold })
    }

    /// Whether the access function was not called yet and may grant more.
    pub(crate) const fn needs_function(&self) -> bool {
        self.pending_credentials.is_some()
    }

    /// Calls the access function.
    pub(crate) fn ask(
        &self,
        request: &mut RequestParts<'_>,
    ) -> Option<Result<(AccessQuery, GrantFuture), Rejection>> {
        let (function, credentials) =
            (self.access_control.access.function.as_ref()?, self.pending_credentials?);
        let access_control = Arc::clone(self.access_control);
        let issued = Issued::Behind(access_control.quotas.revocations());
        let (session, fault) = (self.session.clone(), self.fault.clone());
        let login = self.login.clone();
        let question = AccessQuery {
            access_control,
            credentials,
            session,
            fault,
            login,
            asked_at: now(),
            issued,
        };
        Some(function.ask(request).map(|answering| (question, answering)))
    }

    /// Replaces the grant with the access function's result.
    pub(crate) fn with_grant(self, session: Option<Arc<ActiveGrant>>) -> Self {
        Self { session, pending_credentials: None, ..self }
    }

    /// The denial by a rule of rights.
    fn denied_by_rule(&self, action: ChannelAction, channel: &str) -> Denied {
        let doing = doing(action);
        match &self.user {
            Some(user) => {
                let reason = format!("{user} does not have the right: {doing} (`{channel}`)");
                Denied { status: Status::FORBIDDEN, field: None, reason }
            }
            None => {
                let reason = format!("{doing} (`{channel}`) is not open to everybody here; log in");
                unauthorized(None, &reason)
            }
        }
    }

    fn denied(&self, action: ChannelAction, channel: Option<&str>) -> Denied {
        let doing = doing(action);
        let which = channel.map(|channel| format!(" (`{channel}`)")).unwrap_or_default();
        let name = action.name();
        if let Some(fault) = &self.fault {
            let reason = format!(
                "{doing}{which} is not open to everybody here, and the token was not taken: {fault}"
            );
            return unauthorized(Some(fault), &reason);
        }
        if let Some(subject) = self.session.as_ref().and_then(|session| session.subject()) {
            let reason = format!(
                "{doing}{which} is not granted to {subject:?}; a grant names the channel under `{name}`"
            );
            let challenge = format!(
                "Bearer realm=\"channels\", error=\"insufficient_scope\", scope=\"{name}\""
            );
            let field = Some(("WWW-Authenticate", challenge));
            return Denied { status: Status::FORBIDDEN, field, reason };
        }
        let reason = format!("{doing}{which} is not open to everybody here");
        let AccessControl { access, scopes, .. } = &**self.access_control;
        let Access { users, tokens, function, .. } = access;
        let is_for_users = !users.are_none() || scopes.are_for_users(action, channel);
        match (tokens, function) {
            (Some(tokens), _) => unauthorized(
                None,
                &format!(
                    "{reason}; show a token that has the channel under `{name}`: as Authorization: Bearer TOKEN, as the cookie {}, or in the query as {QUERY}=TOKEN",
                    tokens.cookie
                ),
            ),
            (None, Some(_)) => unauthorized(None, &format!("{reason}; say who you are")),
            (None, None) if is_for_users => unauthorized(None, &format!("{reason}; log in")),
            (None, None) => Denied { status: Status::FORBIDDEN, field: None, reason },
        }
    }
}

impl Access {
    fn permits(&self, session: Option<&ActiveGrant>, permit: impl Fn(&Rules) -> bool) -> bool {
        permit(&self.rules) || session.is_some_and(|session| permit(&session.grant.rules))
    }
}

impl OwnedClient {
    /// Returns the client for further checks.
    pub(crate) fn client(&self) -> ChannelClient<'_> {
        let Self { access_control, block, session, user, .. } = self;
        let (session, block, user) = (session.clone(), *block, user.clone());
        ChannelClient {
            access_control,
            block,
            session,
            fault: None,
            login: None,
            user,
            followed: Mutex::default(),
            pending_credentials: None,
            unloaded: Mutex::default(),
        }
    }

    /// Makes the hold depend on the rights to the channels that `client` has checked.
    ///
    /// # Errors
    ///
    /// A right was lost in the meantime.
    pub(crate) fn depend_on(&self, client: &ChannelClient<'_>) -> Result<(), Denied> {
        let Some(session) = &self.session else { return Ok(()) };
        let Some(rights) = &session.follow_rights else { return Ok(()) };
        rights.follow(std::mem::take(&mut *client.followed()));
        if session.has_lost_rights() { Err(Denied::of_end(0)) } else { Ok(()) }
    }

    /// The end of the grant in milliseconds since 1970; 0: it was revoked.
    pub(crate) fn grant_end(&self) -> u64 {
        self.session.as_ref().map_or(u64::MAX, |session| session.grant_end())
    }
}

impl HoldPermit {
    /// Reserves a hold for a client that a page permits to follow. The client counts by its
    /// address. The hold ends with the login if the page has read it, and with the right to `page`,
    /// the request for it.
    ///
    /// # Errors
    ///
    /// A limit of holds is reached, or the session has ended in the meantime.
    pub(crate) fn of_peer(
        quotas: &Arc<QuotaTable>,
        peer: ClientAddress,
        login: Option<Login>,
        page: Option<&Incoming<'_>>,
    ) -> Result<Self, Denied> {
        let issued = Issued::Behind(quotas.revocations());
        let session =
            login.map(|login| ActiveGrant::new(Grant::none(), issued).with_login(Some(login)));
        let rights = quotas.guard().zip(page);
        let rights = rights.map(|(guard, request)| FollowRights::of_page(guard, request));
        let session = match rights {
            Some(rights) => Some(ActiveGrant::following(session.as_ref(), issued, rights)),
            None => session,
        };
        let session = session.map(Arc::new);
        Self::reserve(quotas, peer.block(), session.as_ref())
    }

    fn reserve(
        quotas: &Arc<QuotaTable>,
        block: AddressBlock,
        session: Option<&Arc<ActiveGrant>>,
    ) -> Result<Self, Denied> {
        let number = match quotas.reserve(block, session) {
            Ok(number) => number,
            Err(HoldRejection::CapExceeded(exceeded)) => return Err(exceeded.into()),
            Err(HoldRejection::Revoked) => {
                return Err(unauthorized(Some("it was revoked"), "it was revoked"));
            }
        };
        let is_counted = number >= FIRST_GROUP;
        Ok(Self { quotas: is_counted.then(|| Arc::clone(quotas)), number: number.into() })
    }

    /// Turns it into the hold of a task.
    pub(crate) fn into_guard(self, quotas: &Arc<QuotaTable>) -> HoldGuard {
        let number = self.take();
        quotas.begin_hold(number);
        HoldGuard { quotas: Arc::clone(quotas), number, channels: 0 }
    }

    /// Takes the group number. The caller must release the hold.
    pub(crate) fn take(&self) -> u32 {
        self.number.swap(0, Ordering::Relaxed)
    }

    pub(super) fn number(&self) -> u32 {
        self.number.load(Ordering::Relaxed)
    }
}

impl Drop for HoldPermit {
    fn drop(&mut self) {
        if let Some(quotas) = &self.quotas {
            quotas.release(self.take());
        }
    }
}

impl HoldGuard {
    /// The end of the grant in milliseconds since 1970; 0: it was revoked.
    pub(crate) fn grant_end(&self) -> u64 {
        self.quotas.grant_end(self.number).unwrap_or(u64::MAX)
    }

    /// Sets the number of followed channels.
    pub(crate) fn follow(&mut self, channels: usize) {
        self.quotas.remove_channels(self.number, self.channels);
        self.quotas.add_channels(self.number, channels);
        self.channels = channels;
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        self.follow(0);
        self.quotas.end_hold(self.number);
    }
}

impl fmt::Debug for AccessControl {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.access.fmt(to)
    }
}

impl fmt::Debug for HoldPermit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "HoldPermit({})", self.number())
    }
}

impl AccessQuery {
    /// Evaluates and caches the result of the access function.
    ///
    /// # Errors
    ///
    /// The function failed.
    pub(crate) fn complete(
        self,
        answer: Result<Grant, Error>,
    ) -> Result<Option<Arc<ActiveGrant>>, Denied> {
        let Self { access_control, credentials, session, fault, login, asked_at, issued } = self;
        let grant = answer.map_err(|error| {
            let causes: Vec<_> = error.chain().collect();
            if !causes.is_empty() {
                log::error(format_args!("who may reach channels: {}", causes.join(": ")));
            }
            let reason = error.message().unwrap_or("who may do this could not be found out");
            Denied { status: error.code(), field: None, reason: reason.to_owned() }
        })?;
        if let Some(fault) = grant.fault() {
            log::error(format_args!("a grant of channels: {fault}"));
        }
        let grant = grant.sound();
        let session = match session {
            Some(own) => Some(Arc::new(own.and(grant, issued).with_login(login))),
            None if grant.subject.is_none() && grant.rules.are_none() => None,
            None => Some(Arc::new(ActiveGrant::new(grant, issued).with_login(login))),
        };
        let age = access_control.access.age.unwrap_or(AGE).as_millis() as u64;
        let ends = session.as_ref().map_or(u64::MAX, |session| session.grant_end());
        let until = ends.min(asked_at.saturating_add(age));
        let known = CachedGrant { session: session.clone(), fault, includes_function: true, until };
        access_control.remember(credentials, known, now());
        Ok(session)
    }
}

/// The action, for a message.
const fn doing(action: ChannelAction) -> &'static str {
    match action {
        ChannelAction::Follow => "following",
        ChannelAction::Publish => "publishing",
        ChannelAction::Manage => "making, closing and removing channels",
    }
}

/// Finds the token of a request: in its fields, in its query, or in a cookie.
fn token<'h>(head: &Head<'h>, cookie_name: &str) -> Option<&'h str> {
    let bearer = head.field_text("Authorization").and_then(|field| {
        let (scheme, token) = field.split_once(' ')?;
        scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
    });
    // API tokens identify users, not channels.
    let bearer = bearer.filter(|token| !token.starts_with(TOKEN_PREFIX));
    let in_cookie = || cookie(head.field_text("Cookie")?, cookie_name);
    bearer.or_else(|| token_in_query(head)).or_else(in_cookie).filter(|token| !token.is_empty())
}

/// Hashes everything that an access function may read of a request.
fn credentials(request: &Incoming<'_>, login: Option<&Login>) -> CredentialsHash {
    let head = &request.head;
    let address = match request.peer.ip() {
        Some(IpAddr::V4(ip)) => ip.octets().to_vec(),
        Some(IpAddr::V6(ip)) => ip.octets().to_vec(),
        None => Vec::new(),
    };
    let field = |name| head.field(name).unwrap_or_default();
    let token = token_in_query(head).unwrap_or_default();
    // A cookie of an ended session counts like any other cookie, by its text.
    let login = login.map(|login| login.row().number().to_be_bytes()).unwrap_or_default();
    hash(&[&address, field("Authorization"), field("Cookie"), token.as_bytes(), &login])
}

fn hash(parts: &[&[u8]]) -> CredentialsHash {
    let mut digest = digest::Context::new(&digest::SHA256);
    for part in parts {
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    // SHA-256 has 32 bytes.
    digest.finish().as_ref().try_into().unwrap_or_default()
}
