//! The live pages as a subsystem of a program: its methods of [`App`], and its start.

use std::rc::Rc;
use std::sync::Arc;

use bine_server::{Answer, Clock, Handler, Incoming, Outgoing};

use super::schedule::RenderLimits;
use super::shared_region_key::shared_region_key;
use super::stream::PATH;
use super::thread_waiters::waiters;
use super::{Events, Live};
use crate::app::App;
use crate::app_state::AppState;
use crate::channels::{ChannelEngine, Engine};
use crate::error::Error;
use crate::listing::Listed;
use crate::methods::Methods;
use crate::prometheus::PrometheusText;
use crate::region_key::{choose_region_key, keep_region_key};
use crate::shared_state::SharedState;
use crate::store::RowId;
use crate::subsystem::{
    Definition, Mount, MountedHandler, Outline, Registration, Running, Start, Subsystem,
};

/// The live pages of a program that has not started.
#[derive(Default)]
struct LiveSubsystem {
    /// Names of events; `true` marks those for logged-in users only.
    events: Vec<(&'static str, bool)>,
    on_events_open: Vec<OnEventsOpen>,
    /// Set when the program is defined.
    defined: Option<Defined>,
}

/// The live pages, and the engine of the channels: each thread serves the subscribers of both.
struct Defined {
    live: Arc<Live>,
    channels: Arc<Engine>,
}

/// A function that uses the program's events before the first request.
type OnEventsOpen = Box<dyn FnOnce(&Events) -> Result<(), Error>>;

inventory::submit! {
    Registration { rank: 30, create: || Box::new(LiveSubsystem::default()) }
}

impl App {
    /// Declares an event of this name, which every page and every other program may subscribe to.
    /// Handlers that take [`Events`](crate::Events) publish it.
    pub fn event(mut self, name: &'static str) -> Self {
        self.subsystems.get_mut::<LiveSubsystem>().events.push((name, false));
        self
    }

    /// Declares an event that only logged-in users receive.
    pub fn event_for_users(mut self, name: &'static str) -> Self {
        self.subsystems.get_mut::<LiveSubsystem>().events.push((name, true));
        self
    }

    /// Runs once when the events are available, before the first request: the place for threads
    /// that publish events by themselves. An error aborts the start. After shutdown
    /// [`broadcast`](crate::Events::broadcast) and [`notify_one`](crate::Events::notify_one) return
    /// an error, at which such a thread should end.
    pub fn on_events_open(
        mut self,
        run: impl FnOnce(&Events) -> Result<(), Error> + 'static,
    ) -> Self {
        self.subsystems.get_mut::<LiveSubsystem>().on_events_open.push(Box::new(run));
        self
    }
}

impl Subsystem for LiveSubsystem {
    fn list(&self, outline: &Outline<'_>, listed: &mut Vec<Listed>) {
        if !outline.routes.is_empty() {
            listed.push(Listed::new(Methods::GET, PATH, "live", ""));
        }
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        let live = Arc::new(Live::new(&self.events, definition.has_middleware));
        live.register(&mut definition.states);
        if let Some(state) = definition.states.find::<SharedState>() {
            live.share(state);
        }
        if definition.staleness.is_shared() {
            live.report_staleness(&definition.staleness);
        }
        definition.mounts.push(Mount {
            name: "live",
            path: PATH,
            has_descendants: false,
            is_gated: true,
            handler: Arc::new(LiveEndpoint(Arc::clone(&live))),
        });
        definition.running.push(Arc::new(RunningLive(Arc::clone(&live))));
        let channels = definition.states.find::<ChannelEngine>();
        let channels = channels.ok_or("live pages need the channels, which start before them")?;
        self.defined = Some(Defined { live, channels: Arc::clone(&channels.0) });
        Ok(())
    }

    fn start(&mut self, start: &Start<'_>) -> Result<(), String> {
        let Some(Defined { live, channels }) = &self.defined else { return Ok(()) };
        if let Some(store) = start.store() {
            if store.is_shared() {
                choose_region_key(|own| shared_region_key(store, own))?;
            } else if let Some(data) = &start.configuration.data {
                keep_region_key(data);
            }
            live.follow(store);
        }
        let limits: RenderLimits = start.configuration.choice();
        live.limit(limits, start.server.admission());
        live.serve_with(start.handler);
        start.server.set_waiters(waiters(channels, live.engine(), &start.shared.staleness));
        for run in self.on_events_open.drain(..) {
            run(live.events())
                .map_err(|error| format!("`.on_events_open(..)` failed: {error:?}"))?;
        }
        Ok(())
    }
}

/// The handler of the stream that open pages follow.
struct LiveEndpoint(Arc<Live>);

impl MountedHandler for LiveEndpoint {
    fn respond(
        &self,
        _path: &str,
        request: &Incoming<'_>,
        app: &Arc<AppState>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        self.0.respond(request, app, clock, out)
    }
}

/// The hooks of live pages while the program runs.
struct RunningLive(Arc<Live>);

impl Running for RunningLive {
    fn use_handler(&self, handler: &Arc<dyn Handler>) {
        self.0.serve_with(handler);
    }

    fn end_logins(&self, rows: Option<&[RowId]>) {
        self.0.engine().end_logins(rows);
    }

    fn write_metrics(&self, text: &mut PrometheusText) {
        let metrics = self.0.figures();
        text.gauge("bine_live_viewers", "Browsers that follow a live page.").is(metrics.viewers);
        text.gauge(
            "bine_live_showings",
            "Live pages, each counted once for all viewers of the same content.",
        )
        .is(metrics.showings);
        text.gauge("bine_live_waiting", "Browsers whose live page has not been rendered yet.")
            .is(metrics.waiting);
        text.gauge(
            "bine_live_busy_threads",
            "Threads that run a live page now, without the one that renders changes only.",
        )
        .is(metrics.busy_threads);
        text.counter(
            "bine_live_refused_total",
            "Browsers rejected because too many waited for a live page.",
        )
        .is(metrics.refused);
        text.counter("bine_live_runs_total", "Repeated runs of live pages.").is(metrics.runs);
        text.counter(
            "bine_live_patches_total",
            "Patches and events, each counted once for all its receivers.",
        )
        .is(metrics.patches);
    }

    fn unfinished_work(&self) -> Option<String> {
        self.0.unfinished_work()
    }

    fn stop(&self) {
        self.0.end();
    }
}
