//! The sessions as a subsystem of a program: its method of [`App`], and its start.

use std::sync::Arc;

use super::choices::SessionChoices;
use super::{SessionStore, Sessions};
use crate::app::App;
use crate::prometheus::PrometheusText;
use crate::request_session::SessionProvider;
use crate::route::{Route, RouteKind};
use crate::store::Options;
use crate::subsystem::{Definition, Outline, Registration, Running, Start, Subsystem};

/// The sessions of a program that has not started.
#[derive(Default)]
struct SessionSubsystem {
    /// `None`: the defaults apply, if the program needs sessions.
    settings: Option<Sessions>,
    /// Set if the program has sessions.
    session_store: Option<Arc<SessionStore>>,
}

inventory::submit! {
    Registration { rank: 10, create: || Box::new(SessionSubsystem::default()) }
}

impl App {
    /// Sets how long sessions last. A program in which a page takes a [`Session`](crate::Session)
    /// has sessions anyway. The store keeps them with the tables.
    pub fn sessions(mut self, sessions: Sessions) -> Self {
        self.subsystems.get_mut::<SessionSubsystem>().settings = Some(sessions);
        self
    }
}

impl SessionSubsystem {
    /// The settings of the sessions, if the program has sessions.
    fn wanted(&self, outline: &Outline<'_>) -> Option<Sessions> {
        let needs_session = |route: &Route| {
            let is_service = route.info.kind == RouteKind::Service;
            let rule = route.info.rule.unwrap_or(outline.default_rule);
            route.needs.sessions || is_service && rule.needs_session
        };
        let is_wanted = || {
            outline.has_actions
                || outline.needs_sessions
                || outline.layout_takes_user
                || outline.routes.iter().any(needs_session)
        };
        self.settings.clone().or_else(|| is_wanted().then(Sessions::new))
    }
}

impl Subsystem for SessionSubsystem {
    fn needs_store(&self, outline: &Outline<'_>) -> bool {
        self.wanted(outline).is_some()
    }

    fn sessions(&mut self, outline: &Outline<'_>) -> Option<Arc<dyn SessionProvider>> {
        let session_store = Arc::new(SessionStore::new(self.wanted(outline)?));
        self.session_store = Some(Arc::clone(&session_store));
        Some(Arc::new(session_store))
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        if let Some(session_store) = &self.session_store {
            definition.states.share(Arc::clone(session_store));
            definition.running.push(Arc::new(RunningSessions(Arc::clone(session_store))));
        }
        Ok(())
    }

    fn declare(&self, options: Options) -> Options {
        if self.session_store.is_some() { SessionStore::declare(options) } else { options }
    }

    fn start(&mut self, start: &Start<'_>) -> Result<(), String> {
        let Some((session_store, store)) = self.session_store.as_ref().zip(start.store()) else {
            return Ok(());
        };
        // A weak reference: the sessions are part of what it refers to.
        let shared = Arc::downgrade(start.shared);
        session_store.tell(move |rows| {
            let Some(shared) = shared.upgrade() else { return };
            shared.running.iter().for_each(|running| running.end_logins(rows));
        });
        let choices: SessionChoices = start.configuration.choice();
        let data = start.configuration.data.as_deref();
        session_store.open(store, data, choices.idle, choices.absolute)
    }
}

/// The hooks of sessions while the program runs.
struct RunningSessions(Arc<SessionStore>);

impl Running for RunningSessions {
    fn write_metrics(&self, text: &mut PrometheusText) {
        if let Some(count) = self.0.count() {
            text.gauge("bine_sessions", "Stored sessions.").is(count);
        }
    }
}
