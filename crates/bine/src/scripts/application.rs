//! An application that all threads share: its pages, and the generation that is current.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bine_log as log;

use super::browser_files::BrowserFiles;
use super::channels::ChannelQueue;
use super::fetch::{FetchLimits, FetchQueue};
use super::folders::{self, AppFolder};
use super::generation::{CompileFailure, Generation};
use super::page_router::PageRouter;
use super::start::{Dispatcher, PagePlace, PageRequest};
use crate::channels::ScopeRules;
use crate::error::Error;
use crate::service::in_process::ServiceDirectory;
use crate::service::{Caller, Rule};
use crate::signal_core::SignalCore;
use crate::trace;

/// In development, the files are checked for changes this often, at most.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// An application of a site.
pub(super) struct Application {
    /// Different for each application of the process.
    pub(super) id: u64,
    /// The path of its URL: empty, or with a slash at its start only.
    pub(super) url: String,
    /// The folder of the site.
    root: PathBuf,
    /// The number of the current generation; 0 before the first.
    number: AtomicU64,
    /// The number of the current list of pages.
    listing_number: AtomicU64,
    state: Mutex<ApplicationState>,
    /// The requests of its scripts to other servers.
    pub(super) fetches: Arc<FetchQueue>,
    /// The scheduler of the start script, and how long a request may wait for a place.
    scheduling: OnceLock<(Arc<Dispatcher>, Duration)>,
    /// Changes with each generation: open live pages are rendered again.
    pub(super) changed: Arc<SignalCore>,
    /// The rules for its channels, with the number of the generation that has declared them.
    channel_rules: Mutex<Option<(u64, Arc<ScopeRules>)>>,
    /// The work of services on channels after their creation.
    pub(super) channel_queue: Arc<ChannelQueue>,
    /// The modules of the browser, of this generation and earlier ones.
    pub(super) browser_files: BrowserFiles,
    /// The services of the program in Rust. Set before the first request.
    pub(super) rust_services: OnceLock<ServiceDirectory>,
    /// Why it can have no channels, if the start has found a reason.
    pub(super) channel_conflict: OnceLock<Arc<str>>,
}

/// The pages of an application, before anything is loaded.
pub(super) struct PageListing {
    pub(super) number: u64,
    pub(super) app: AppFolder,
    pub(super) router: PageRouter,
    /// The permitted users of the application.
    pub(super) rule: Rule,
}

impl PageListing {
    fn new(number: u64, app: AppFolder) -> Result<Arc<Self>, String> {
        let (router, rule) = (PageRouter::new(&app)?, app.settings.access.rule());
        Ok(Arc::new(Self { number, app, router, rule }))
    }
}

struct ApplicationState {
    listing: Arc<PageListing>,
    /// The current generation, or why it is missing; `None` before the first request.
    compiled: Option<Compiled>,
    checked: Option<Instant>,
    /// Why the folder was last rejected, while it is.
    rejected: Option<String>,
}

impl ApplicationState {
    /// Logs why the folder is rejected, once for each reason: development looks at it several times a
    /// second.
    fn reject(&mut self, name: &str, reason: String) {
        if self.rejected.as_ref() != Some(&reason) {
            log::error(format_args!("{name}: {reason}; the pages stay as they were"));
            self.rejected = Some(reason);
        }
    }
}

/// The result of the compiler.
type Compiled = Result<Arc<Generation>, Arc<CompileFailure>>;

impl Application {
    /// An application that a search has found.
    ///
    /// # Errors
    ///
    /// Two pages have the same path.
    pub(super) fn new(root: &Path, app: AppFolder) -> Result<Self, String> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let url = app.url();
        let mut limits = FetchLimits::default();
        // A request must end before the call that waits for it.
        limits.timeout = limits.timeout.min(app.settings.await_time / 2);
        let listing = PageListing::new(1, app)?;
        Ok(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            url,
            root: root.to_owned(),
            number: AtomicU64::new(0),
            listing_number: AtomicU64::new(1),
            state: Mutex::new(ApplicationState {
                listing,
                compiled: None,
                checked: None,
                rejected: None,
            }),
            fetches: FetchQueue::new(limits),
            scheduling: OnceLock::new(),
            changed: Arc::new(SignalCore::new()),
            channel_rules: Mutex::default(),
            channel_queue: Arc::default(),
            browser_files: BrowserFiles::default(),
            rust_services: OnceLock::new(),
            channel_conflict: OnceLock::new(),
        })
    }

    /// The name in messages.
    pub(super) fn name(&self) -> &str {
        if self.url.is_empty() { "site" } else { &self.url[1..] }
    }

    /// Lets a scheduler decide when its requests run. `patience`: how long one may wait.
    pub(super) fn schedule(&self, dispatcher: &Arc<Dispatcher>, patience: Duration) {
        // The program starts once, so the cell is empty.
        let _ = self.scheduling.set((Arc::clone(dispatcher), patience));
    }

    /// Waits until the scheduler lets a request run; without one, at once. Renders of live regions
    /// have a schedule of their own.
    ///
    /// # Errors
    ///
    /// The scheduler rejects the request, or it has waited too long.
    pub(super) async fn place(
        &self,
        caller: &Caller,
        handler: &'static str,
    ) -> Result<Option<PagePlace>, Error> {
        let Some((dispatcher, patience)) = self.scheduling.get() else { return Ok(None) };
        if trace::current().is_some() {
            return Ok(None);
        }
        let entered = {
            let request = &caller.unrecorded_request();
            dispatcher.enter(&PageRequest { request, handler, patience: *patience })
        };
        entered.await.map(Some)
    }

    /// The number of the current generation.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// The current pages. `last`: those that the thread knows, which are returned if they are current.
    pub(super) fn listing(&self, last: Option<&Arc<PageListing>>) -> Arc<PageListing> {
        let number = self.listing_number.load(Ordering::Acquire);
        match last {
            Some(last) if last.number == number => Arc::clone(last),
            _ => Arc::clone(&self.state().listing),
        }
    }

    /// The current generation. Compiles the modules at the first call.
    pub(super) fn generation(&self) -> Compiled {
        let mut state = self.state();
        match &state.compiled {
            Some(compiled) => compiled.clone(),
            None => {
                let app = state.listing.app.clone();
                self.compile(&mut state, app)
            }
        }
    }

    /// In development, looks for changed files, at most every 200 ms, unless `now` is asked for. A
    /// change begins a new generation, also one that cannot be compiled: its pages show the mistakes.
    pub(super) fn check_files(&self, now: bool) {
        let mut state = self.state();
        let is_recent = |checked: Instant| checked.elapsed() < CHECK_INTERVAL;
        if now || !state.checked.is_some_and(is_recent) {
            state.checked = Some(Instant::now());
            self.update(state, false);
        }
    }

    /// Loads changed files. In production, the last generation stays if the new one cannot be compiled.
    pub(super) fn reload(&self, develops: bool) {
        let mut state = self.state();
        state.rejected = None;
        self.update(state, !develops);
    }

    fn update(&self, mut state: MutexGuard<'_, ApplicationState>, keeps_last: bool) {
        let listed = self.listed();
        let app = match listed {
            Ok(app) => app,
            Err(reason) => return state.reject(self.name(), reason),
        };
        if app != state.listing.app {
            let number = state.listing.number + 1;
            match PageListing::new(number, app.clone()) {
                Ok(listing) => {
                    state.listing = listing;
                    self.listing_number.store(number, Ordering::Release);
                }
                Err(reason) => return state.reject(self.name(), reason),
            }
        }
        state.rejected = None;
        let is_outdated = match &state.compiled {
            None => false,
            Some(Ok(generation)) => generation.app != app || generation.is_outdated(),
            Some(Err(failure)) => failure.is_outdated(),
        };
        if is_outdated {
            let last = state.compiled.clone().filter(|last| keeps_last && last.is_ok());
            let access = app.settings.access.clone();
            let compiled = self.compile(&mut state, app);
            if let (Err(_), Some(Ok(last))) = (&compiled, &last) {
                self.number.store(last.number, Ordering::Release);
                // The last version made the rules of its channels for other visitors.
                if last.app.settings.access != access {
                    self.set_channel_rules(last.number, ScopeRules::default());
                }
                state.compiled = Some(Ok(Arc::clone(last)));
                log::error(format_args!("{}: the last version is served", self.name()));
                return;
            }
            drop(state);
            if compiled.is_ok() {
                log::notice(format_args!("{} has changed and was loaded again", self.name()));
            }
            self.changed.notify();
        }
    }

    /// The rules for the channels of the current generation; `None`: it is not loaded.
    pub(super) fn channel_rules(&self) -> Option<Arc<ScopeRules>> {
        let rules = self.channel_rules.lock().unwrap_or_else(PoisonError::into_inner);
        let current = rules.as_ref().filter(|(number, _)| *number == self.number());
        current.map(|(_, rules)| Arc::clone(rules))
    }

    /// Sets the rules for the channels of a generation.
    pub(super) fn set_channel_rules(&self, number: u64, rules: ScopeRules) {
        let mut known = self.channel_rules.lock().unwrap_or_else(PoisonError::into_inner);
        // A thread may still load an earlier generation.
        if known.as_ref().is_none_or(|(last, _)| *last <= number) {
            *known = Some((number, Arc::new(rules)));
        }
    }

    /// Reads the folder again.
    fn listed(&self) -> Result<AppFolder, String> {
        let path = &self.state_path();
        let found = folders::find(&self.root)?;
        let own = found.into_iter().find(|app| app.path == *path);
        own.ok_or_else(|| format!("the folder has no {} any more", folders::INDEX))
    }

    fn state_path(&self) -> String {
        self.url.trim_start_matches('/').to_owned()
    }

    fn compile(&self, state: &mut ApplicationState, app: AppFolder) -> Compiled {
        let number = self.number() + 1;
        let compiled: Compiled = Generation::compile(number, app, self.rust_services.get())
            .map(Arc::new)
            .map_err(|failure| Arc::new(*failure));
        if let Ok(generation) = &compiled {
            self.browser_files.add(&generation.browser);
        }
        if let Err(failure) = &compiled {
            log::error(format_args!("{} cannot be loaded:\n{}", self.name(), failure.message()));
        }
        state.compiled = Some(compiled.clone());
        self.number.store(number, Ordering::Release);
        compiled
    }

    fn state(&self) -> MutexGuard<'_, ApplicationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::{ChannelAction, RuleAudience};
    use crate::scripts::testing::Folder;

    #[test]
    fn closes_channels_of_an_application_that_is_closed_by_a_reload_that_fails() {
        let page = "import { page } from \"bine\";\nexport default page(() => <p />);\n";
        let folder = Folder::with(&[("index.tsx", page)]);
        let [found] = &folders::find(folder.path()).unwrap()[..] else { panic!("one application") };
        let app = Application::new(folder.path(), found.clone()).unwrap();
        let generation = app.generation().unwrap();
        let open = || {
            let mut rules = ScopeRules::default();
            let news = "site/news".into();
            rules.permit(ChannelAction::Follow, RuleAudience::Everyone, news).unwrap();
            rules
        };
        let is_open = || {
            let rules = app.channel_rules().expect("a generation is current");
            rules.permits(ChannelAction::Follow, "site/news", None)
        };
        app.set_channel_rules(generation.number, open());
        // A broken version with the same access has no effect.
        folder.write("index.tsx", "export default 1 +;");
        app.reload(false);
        assert!(is_open());
        folder.write("app.toml", "access = \"users\"");
        app.reload(false);
        assert!(!is_open());
    }
}
