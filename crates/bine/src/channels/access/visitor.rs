//! Decides who a request is from, and what they may do.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_http::{Head, Status};
use bine_log as log;
use bine_push::{Draft, Publisher};
use bine_server::{AddressBlock, Incoming, Peer};
use ring::digest;

use super::ask::{Answering, QUERY, cookie, login_of, token_in_query};
use super::denied::{Denied, unauthorized};
use super::grant::{Action, Grant, Issued, Rules, Session};
use super::party::{FIRST, Paid, Parties, Quotas, Shut};
use super::token::Taken;
use super::{AGE, Access};
use crate::Error;
use crate::arguments::{Arguments, Needs, Rejection};
use crate::channels::clock::now;
use crate::channels::presence::Attendance;
use crate::sessions::Login;
use crate::user_name::UserName;

/// Sessions that are known at once; beyond, some are asked again.
const MOST: usize = 50_000;

/// Access as it is given, and who has come by it.
pub(crate) struct Gate {
    access: Access,
    parties: Arc<Parties>,
    attendance: Arc<Attendance>,
    pub(in crate::channels) quotas: Quotas,
    sessions: Mutex<HashMap<Shown, Known>>,
}

/// What a visitor shows, so that nobody who does not can be taken for them.
type Shown = [u8; 32];

/// What is known of who shows the same.
#[derive(Clone)]
struct Known {
    session: Option<Arc<Session>>,
    /// Why their token was not taken.
    fault: Option<Arc<str>>,
    /// The function was asked.
    was_asked: bool,
    /// In milliseconds since 1970.
    until: u64,
}

/// Who a request is from.
pub(crate) struct Visitor<'g> {
    gate: &'g Arc<Gate>,
    block: AddressBlock,
    session: Option<Arc<Session>>,
    fault: Option<Arc<str>>,
    /// By which they are a user.
    login: Option<Login>,
    /// By what the function would know them, if it was not asked.
    unasked: Option<Shown>,
}

/// One who stays: a visitor past the request.
pub(crate) struct Resident {
    gate: Arc<Gate>,
    block: AddressBlock,
    session: Option<Arc<Session>>,
    /// By what name they are present.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) seat: Seated,
}

/// Counts as one hold of a party until it is dropped, or taken to where it waits.
#[derive(Default)]
pub(crate) struct Pass {
    /// Of a party that is counted.
    parties: Option<Arc<Parties>>,
    number: AtomicU32,
}

/// Counts as one who waits in a task, until it is dropped.
pub(crate) struct Seated {
    parties: Arc<Parties>,
    number: u32,
    /// That it follows.
    channels: usize,
}

/// A function that was asked about a visitor.
pub(crate) struct Question {
    gate: Arc<Gate>,
    shown: Shown,
    session: Option<Arc<Session>>,
    fault: Option<Arc<str>>,
    login: Option<Login>,
    asked_at: u64,
    issued: Issued,
}

impl Gate {
    /// # Errors
    ///
    /// What is wrong with what access says.
    pub(crate) fn new(
        access: Access,
        parties: Arc<Parties>,
        attendance: Arc<Attendance>,
    ) -> Result<Self, String> {
        if let Some(fault) = access.fault() {
            return Err(format!("who may reach channels: {fault}"));
        }
        let longest = access.tokens.as_ref().map(|tokens| tokens.longest).unwrap_or_default();
        parties.settle(access.caps, longest);
        let quotas = access.caps.quotas();
        Ok(Self { access, parties, attendance, quotas, sessions: Mutex::default() })
    }

    /// Whether anybody may do anything.
    pub(crate) fn is_open(&self) -> bool {
        let Access { rules, users, tokens, function, .. } = &self.access;
        !rules.are_none() || !users.are_none() || tokens.is_some() || function.is_some()
    }

    /// What the function that is asked must have.
    pub(crate) fn needs(&self) -> Needs {
        self.access.function.as_ref().map(super::Function::needs).unwrap_or_default()
    }

    /// The other site, of those that may, whose page a request is from.
    pub(crate) fn origin_of(&self, head: &Head<'_>) -> Option<Arc<str>> {
        self.access.origin_of(head)
    }

    /// Looks who a request is from.
    pub(crate) fn recognize(self: &Arc<Self>, request: &Incoming<'_>) -> Visitor<'_> {
        let block = request.peer.block();
        let mut visitor =
            Visitor { gate: self, block, session: None, fault: None, login: None, unasked: None };
        let Access { users, tokens, function, .. } = &self.access;
        if function.is_some() || !users.are_none() {
            visitor.login = login_of(request);
        }
        let token = tokens
            .as_ref()
            .and_then(|tokens| Some((tokens, token(&request.head, &tokens.cookie)?)));
        if token.is_none() && function.is_none() && visitor.login.is_none() {
            return visitor;
        }
        let shown = match (function, token, &visitor.login) {
            (None, Some((_, token)), None) => hash(&[token.as_bytes()]),
            (_, _, login) => shown(request, login.as_ref()),
        };
        let now = now();
        let known = match self.known(&shown, now) {
            Some(known) => known,
            None => {
                let taken = token.map(|(tokens, token)| tokens.read(token, now));
                let known = self.first_look(taken, visitor.login.as_ref(), now);
                if known.session.is_some() {
                    self.remember(shown, known.clone(), now);
                }
                known
            }
        };
        visitor.unasked = (function.is_some() && !known.was_asked).then_some(shown);
        (visitor.session, visitor.fault) = (known.session, known.fault);
        visitor
    }

    /// What rules for users and a token say of somebody.
    fn first_look(
        &self,
        token: Option<Result<Taken, String>>,
        login: Option<&Login>,
        now: u64,
    ) -> Known {
        let (mut session, mut fault) = (None, None);
        match token {
            None => {}
            Some(Err(reason)) => fault = Some(reason.into()),
            Some(Ok(taken)) => {
                session = Some(Session::new(taken.grant, Issued::At(taken.issued)));
                if session.as_ref().is_some_and(|session| self.parties.has_revoked(session)) {
                    (session, fault) = (None, Some("it was revoked".into()));
                }
            }
        }
        let mut until = u64::MAX;
        let login = login.filter(|_| !self.access.users.are_none());
        // Who logged in before names were checked may have one that is given nothing.
        if let Some((login, user)) =
            login.and_then(|login| Some((login, UserName::parse(&login.user).ok()?)))
        {
            let issued = Issued::Behind(self.parties.revocations());
            let rules = self.access.users.of_user(&user);
            let grant = Grant { rules, ..Grant::to(&user) };
            let own = match session {
                Some(token) => token.and(grant, issued),
                None => Session::new(grant, issued),
            };
            session = Some(own.by(Some(login.clone())));
            until = now + AGE.as_millis() as u64;
        }
        let session = session.map(Arc::new);
        let until = session.as_ref().map_or(0, |session| session.ends()).min(until);
        Known { session, fault, was_asked: false, until }
    }

    fn known(&self, shown: &Shown, now: u64) -> Option<Known> {
        let known = self.sessions().get(shown).filter(|known| known.until > now).cloned()?;
        let is_revoked = known.session.as_ref().is_some_and(|own| self.parties.has_revoked(own));
        Some(known).filter(|_| !is_revoked)
    }

    fn remember(&self, shown: Shown, known: Known, now: u64) {
        let mut sessions = self.sessions();
        if sessions.len() >= MOST && !sessions.contains_key(&shown) {
            sessions.retain(|_, known| known.until > now);
            if sessions.len() >= MOST {
                // Half of them, whichever: looking for the oldest would cost more than to ask again.
                let mut is_kept = false;
                sessions.retain(|_, _| {
                    is_kept = !is_kept;
                    is_kept
                });
            }
        }
        sessions.insert(shown, known);
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<Shown, Known>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visitor<'_> {
    /// Whether they may do this with this channel.
    ///
    /// # Errors
    ///
    /// They may not, and are told so.
    pub(crate) fn check(&self, action: Action, channel: &str) -> Result<(), Denied> {
        if action != Action::Follow && self.gate.attendance.tells_in(channel) {
            let reason =
                format!("`{channel}` tells who comes and goes: it is followed, and nothing else");
            return Err(Denied { status: Status::FORBIDDEN, field: None, reason });
        }
        let permit = |rules: &Rules| rules.permit(action, channel);
        if self.gate.access.permits(self.session.as_deref(), permit) {
            return Ok(());
        }
        Err(self.denied(action, Some(channel)))
    }

    /// Who they are, if it is known.
    pub(crate) fn subject(&self) -> Option<&str> {
        self.session.as_ref()?.subject().map(|subject| &**subject)
    }

    /// Whether there is any channel with which they may do it.
    ///
    /// # Errors
    ///
    /// There is none, and they are told so.
    pub(crate) fn check_some(&self, action: Action) -> Result<(), Denied> {
        let permit = |rules: &Rules| rules.permit_some(action);
        if self.unasked.is_some() || self.gate.access.permits(self.session.as_deref(), permit) {
            return Ok(());
        }
        Err(self.denied(action, None))
    }

    /// The other site, of those that may, whose page asks.
    pub(crate) fn origin_of(&self, head: &Head<'_>) -> Option<Arc<str>> {
        self.gate.origin_of(head)
    }

    /// Counts one more that waits.
    ///
    /// # Errors
    ///
    /// Too many do.
    pub(crate) fn pass(&self) -> Result<Pass, Denied> {
        Pass::enter(&self.gate.parties, self.block, self.session.as_ref())
    }

    /// Counts messages that they publish.
    ///
    /// # Errors
    ///
    /// They publish too many.
    pub(crate) fn spend(&self, messages: usize) -> Result<(), Denied> {
        self.pay(Paid::Messages(messages))
    }

    /// Counts one coming, which is told.
    ///
    /// # Errors
    ///
    /// They come and go too often.
    pub(crate) fn come(&self) -> Result<(), Denied> {
        self.pay(Paid::Coming)
    }

    /// With whom they may share a list of those who are present: from the same address, of those who are known by nothing
    /// else and may call themselves anything, so many.
    pub(crate) fn crowd(&self) -> Option<(AddressBlock, u32)> {
        let most = self.gate.parties.caps().holds_of(self.block);
        self.subject().is_none().then_some((self.block, most))
    }

    /// Whose quota of bytes counts what they make and publish.
    pub(crate) fn publisher(&self) -> Publisher {
        let quotas = self.gate.quotas;
        match self.session.as_ref().and_then(|session| session.subject()) {
            Some(subject) => Publisher { name: Arc::clone(subject), bytes: quotas.per_subject },
            None => {
                let bytes = if self.block.is_local() { quotas.local } else { quotas.per_subject };
                // No user has a slash in their name.
                Publisher { name: format!("address/{}", self.block).into(), bytes }
            }
        }
    }

    fn pay(&self, paid: Paid) -> Result<(), Denied> {
        let (parties, now) = (&self.gate.parties, now() * 1000);
        parties.spend(self.block, self.session.as_ref(), paid, now).map_err(Into::into)
    }

    /// Whether all is known that may be permitted to them.
    ///
    /// # Errors
    ///
    /// The function must be asked first.
    pub(crate) fn check_all_known(&self) -> Result<(), Denied> {
        if self.is_unasked() { Err(self.denied(Action::Follow, None)) } else { Ok(()) }
    }

    /// Lets a batch pass, or nothing of it.
    ///
    /// # Errors
    ///
    /// They may not publish in one of its channels, or publish too many.
    pub(crate) fn check_batch(&self, messages: &[Draft]) -> Result<(), Denied> {
        for channel in messages.iter().flat_map(|message| &message.channels) {
            self.check(Action::Publish, channel)?;
        }
        self.spend(messages.len())
    }

    /// They stay past the request, and are present by a name.
    ///
    /// # Errors
    ///
    /// Too many do.
    pub(crate) fn stay(&self, name: Option<Arc<str>>) -> Result<Resident, Denied> {
        let seat = self.pass()?.sit(&self.gate.parties);
        let (gate, session) = (Arc::clone(self.gate), self.session.clone());
        Ok(Resident { gate, block: self.block, session, name, seat })
    }

    /// Whether the function might permit what nothing else does.
    pub(crate) const fn is_unasked(&self) -> bool {
        self.unasked.is_some()
    }

    /// Asks the function.
    pub(crate) fn ask(
        &self,
        request: &mut Arguments<'_>,
    ) -> Option<Result<(Question, Answering), Rejection>> {
        let (function, shown) = (self.gate.access.function.as_ref()?, self.unasked?);
        let gate = Arc::clone(self.gate);
        let issued = Issued::Behind(gate.parties.revocations());
        let (session, fault) = (self.session.clone(), self.fault.clone());
        let login = self.login.clone();
        let question = Question { gate, shown, session, fault, login, asked_at: now(), issued };
        Some(function.ask(request).map(|answering| (question, answering)))
    }

    /// The same after the function was asked.
    pub(crate) fn answered(self, session: Option<Arc<Session>>) -> Self {
        Self { session, unasked: None, ..self }
    }

    fn denied(&self, action: Action, channel: Option<&str>) -> Denied {
        let doing = match action {
            Action::Follow => "following",
            Action::Publish => "publishing",
            Action::Manage => "making, closing and removing channels",
        };
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
        let Access { users, tokens, function, .. } = &self.gate.access;
        match (tokens, function) {
            (Some(tokens), _) => unauthorized(
                None,
                &format!(
                    "{reason}; show a token that has the channel under `{name}`: as Authorization: Bearer TOKEN, as the cookie {}, or in the query as {QUERY}=TOKEN",
                    tokens.cookie
                ),
            ),
            (None, Some(_)) => unauthorized(None, &format!("{reason}; say who you are")),
            (None, None) if !users.are_none() => unauthorized(None, &format!("{reason}; log in")),
            (None, None) => Denied { status: Status::FORBIDDEN, field: None, reason },
        }
    }
}

impl Access {
    fn permits(&self, session: Option<&Session>, permit: impl Fn(&Rules) -> bool) -> bool {
        permit(&self.rules) || session.is_some_and(|session| permit(&session.grant.rules))
    }
}

impl Resident {
    /// As a visitor.
    pub(crate) fn visitor(&self) -> Visitor<'_> {
        let Self { gate, block, session, .. } = self;
        let (session, block) = (session.clone(), *block);
        Visitor { gate, block, session, fault: None, login: None, unasked: None }
    }

    /// When they must go, in milliseconds since 1970; 0: they were shown out.
    pub(crate) fn ends(&self) -> u64 {
        self.session.as_ref().map_or(u64::MAX, |session| session.ends())
    }
}

impl Pass {
    /// Of somebody whom a page lets follow: they are known by their address alone, and by the login if the page has
    /// looked at it.
    ///
    /// # Errors
    ///
    /// Too many wait there, or the session has ended meanwhile.
    pub(crate) fn of_peer(
        parties: &Arc<Parties>,
        peer: Peer,
        login: Option<Login>,
    ) -> Result<Self, Denied> {
        let session = login.map(|login| {
            let issued = Issued::Behind(parties.revocations());
            Arc::new(Session::new(Grant::nothing(), issued).by(Some(login)))
        });
        Self::enter(parties, peer.block(), session.as_ref())
    }

    fn enter(
        parties: &Arc<Parties>,
        block: AddressBlock,
        session: Option<&Arc<Session>>,
    ) -> Result<Self, Denied> {
        let number = match parties.enter(block, session) {
            Ok(number) => number,
            Err(Shut::Crowded(crowded)) => return Err(crowded.into()),
            Err(Shut::Revoked) => {
                return Err(unauthorized(Some("it was revoked"), "it was revoked"));
            }
        };
        let is_counted = number >= FIRST;
        Ok(Self { parties: is_counted.then(|| Arc::clone(parties)), number: number.into() })
    }

    /// It waits from now on, in a task.
    pub(crate) fn sit(self, parties: &Arc<Parties>) -> Seated {
        let number = self.take();
        parties.sit(number);
        Seated { parties: Arc::clone(parties), number, channels: 0 }
    }

    /// The party's number; from here on it is counted by whoever has it.
    pub(crate) fn take(&self) -> u32 {
        self.number.swap(0, Ordering::Relaxed)
    }

    pub(super) fn number(&self) -> u32 {
        self.number.load(Ordering::Relaxed)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(parties) = &self.parties {
            parties.leave(self.take());
        }
    }
}

impl Seated {
    /// When it must go, in milliseconds since 1970; 0: it was shown out.
    pub(crate) fn ends(&self) -> u64 {
        self.parties.ends(self.number).unwrap_or(u64::MAX)
    }

    /// It follows so many channels from now on.
    pub(crate) fn follow(&mut self, channels: usize) {
        self.parties.unload(self.number, self.channels);
        self.parties.load(self.number, channels);
        self.channels = channels;
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        self.follow(0);
        self.parties.rise(self.number);
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.access.fmt(to)
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Pass({})", self.number())
    }
}

impl Question {
    /// Learns what the function said.
    ///
    /// # Errors
    ///
    /// It could not say.
    pub(crate) fn learn(self, said: Result<Grant, Error>) -> Result<Option<Arc<Session>>, Denied> {
        let Self { gate, shown, session, fault, login, asked_at, issued } = self;
        let grant = said.map_err(|error| {
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
            Some(own) => Some(Arc::new(own.and(grant, issued).by(login))),
            None if grant.subject.is_none() && grant.rules.are_none() => None,
            None => Some(Arc::new(Session::new(grant, issued).by(login))),
        };
        let age = gate.access.age.unwrap_or(AGE).as_millis() as u64;
        let ends = session.as_ref().map_or(u64::MAX, |session| session.ends());
        let until = ends.min(asked_at.saturating_add(age));
        let known = Known { session: session.clone(), fault, was_asked: true, until };
        gate.remember(shown, known, now());
        Ok(session)
    }
}

/// The token that a head brings: in its fields, in a cookie, or in its query.
fn token<'h>(head: &Head<'h>, cookie_name: &str) -> Option<&'h str> {
    let bearer = head.field_text("Authorization").and_then(|field| {
        let (scheme, token) = field.split_once(' ')?;
        scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
    });
    let in_cookie = || cookie(head.field_text("Cookie")?, cookie_name);
    bearer.or_else(|| token_in_query(head)).or_else(in_cookie).filter(|token| !token.is_empty())
}

/// All that a function may know a visitor by.
fn shown(request: &Incoming<'_>, login: Option<&Login>) -> Shown {
    let head = &request.head;
    let address = match request.peer.ip() {
        Some(IpAddr::V4(ip)) => ip.octets().to_vec(),
        Some(IpAddr::V6(ip)) => ip.octets().to_vec(),
        None => Vec::new(),
    };
    let field = |name| head.field(name).unwrap_or_default();
    let token = token_in_query(head).unwrap_or_default();
    // A cookie that opens nothing any more is the same as before.
    let login = login.map(|login| login.row().number().to_be_bytes()).unwrap_or_default();
    hash(&[&address, field("Authorization"), field("Cookie"), token.as_bytes(), &login])
}

fn hash(parts: &[&[u8]]) -> Shown {
    let mut digest = digest::Context::new(&digest::SHA256);
    for part in parts {
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    // SHA-256 has 32 bytes.
    digest.finish().as_ref().try_into().unwrap_or_default()
}
