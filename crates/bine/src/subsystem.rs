//! The interface between a program and its subsystems, such as sessions, channels and live pages.
//!
//! The web core names no subsystem. Each one registers itself with [`Registration`], adds its own
//! methods to [`App`](crate::App) and its own [configuration keys](crate::configuration::KeyGroup), and
//! implements [`Subsystem`] for its part of the start and [`Running`] for the hooks that it needs
//! while the program runs. A new subsystem changes no file of existing ones.

use std::any::Any;
use std::borrow::Cow;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use bine_server::scheduler::Scheduler;
use bine_server::{Answer, Clock, Handler, Incoming, Outgoing, Server};

use crate::access_guard::{AccessGuard, DeclaredRules};
use crate::app_state::{AppState, States};
use crate::arguments::Needs;
use crate::authority::CertificateAuthority;
use crate::configuration::Configuration;
use crate::credentials::CredentialSource;
use crate::exit::Exit;
use crate::filter::Filter;
use crate::gate::AdmissionPolicy;
use crate::health::Health;
use crate::listing::Listed;
use crate::node_directory::NodeDirectory;
use crate::prometheus::PrometheusText;
use crate::read_position::ReadPositions;
use crate::request_session::SessionProvider;
use crate::response_stage::ResponseStage;
use crate::route::{AccessRule, Route};
use crate::staleness::Staleness;
use crate::store::{self, Options, RowId, Store, Transaction};
use crate::tables::{StoreOpener, Tables};
use crate::text::Text;
use crate::user_name::NameComparison;

/// The registration of a subsystem: `inventory::submit! { Registration { .. } }`.
pub(crate) struct Registration {
    /// The position in the start order; the shutdown has the reverse order. Each subsystem has its own:
    /// the linker decides in which order registrations arrive.
    pub(crate) rank: u8,
    /// Creates the subsystem of a new program.
    pub(crate) create: fn() -> Box<dyn Subsystem>,
}

inventory::collect!(Registration);

/// A subsystem of a program that has not started: the settings from methods of [`App`](crate::App),
/// and the steps of its start. The program calls the steps in the order of this trait.
pub(crate) trait Subsystem: Any {
    /// Whether the subsystem stores data for this program.
    fn needs_store(&self, _outline: &Outline<'_>) -> bool {
        false
    }

    /// Whether the program has content of the subsystem, besides its routes and files.
    fn has_content(&self) -> bool {
        false
    }

    /// Applies the configuration of the start.
    fn configure(&mut self, _configuration: &Configuration) {}

    /// The data folder of a program whose configuration does not name it, once the configuration of
    /// the start is applied; `None`: that of the program.
    fn default_data(&self) -> Option<PathBuf> {
        None
    }

    /// The access rules and groups that it declares, once the configuration of the start is applied.
    /// One subsystem may declare some.
    fn declared_rules(&self) -> Option<Arc<DeclaredRules>> {
        None
    }

    /// The routes that it adds to the program, once the configuration of the start is applied. The
    /// program's own route at the same path and method replaces such a route.
    fn routes(&mut self, _outline: &Outline<'_>) -> Vec<Route> {
        Vec::new()
    }

    /// Whether it needs the sessions of visitors, besides those that its routes take.
    fn needs_sessions(&self, _outline: &Outline<'_>) -> bool {
        false
    }

    /// Adds its lines to the list of routes that `--routes` prints. `listed` has the lines of the
    /// routes and of all subsystems that start later.
    fn list(&self, _outline: &Outline<'_>, _listed: &mut Vec<Listed>) {}

    /// Writes types of the program for editors, as `--types` asks for, and returns a message that names
    /// the files; `None`: it has none.
    fn write_types(&self, _outline: &Outline<'_>) -> Option<Result<String, String>> {
        None
    }

    /// Checks its sources without running them, as `--check` asks for, and returns the list of mistakes;
    /// `None`: it has none. `is_json`: programs read it.
    fn check_sources(&self, _outline: &Outline<'_>, _is_json: bool) -> Option<Exit> {
        None
    }

    /// Creates the sessions of the program, if it has sessions. One subsystem may provide them.
    fn sessions(&mut self, _outline: &Outline<'_>) -> Option<Arc<dyn SessionProvider>> {
        None
    }

    /// Adds its parts to the program.
    ///
    /// # Errors
    ///
    /// A message that names what is invalid and the correction.
    fn define(&mut self, _definition: &mut Definition) -> Result<(), String> {
        Ok(())
    }

    /// Adds its tables to the store.
    fn declare(&self, options: Options) -> Options {
        options
    }

    /// The function that opens the store in place of the data folder; `None`: it opens none. One
    /// subsystem may have such a function.
    fn store_opener(&mut self) -> Option<StoreOpener> {
        None
    }

    /// Opens addresses, while the process has the privileges that it was started with.
    ///
    /// # Errors
    ///
    /// The address, and why it cannot be opened.
    fn bind(&mut self, _start: &Start<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Restores its data. The program's own functions see the store afterwards.
    ///
    /// # Errors
    ///
    /// What could not be restored.
    fn restore(&mut self, _store: &Store) -> Result<(), String> {
        Ok(())
    }

    /// Starts its threads and runs the program's functions for it. The tables are open, and no
    /// client has been accepted.
    ///
    /// # Errors
    ///
    /// Why the program cannot start.
    fn start(&mut self, _start: &Start<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// The hooks of a subsystem while the program runs. All threads share them.
pub(crate) trait Running: Send + Sync {
    /// A reload has given the program this handler. The first one is in [`Start`].
    fn use_handler(&self, _handler: &Arc<dyn Handler>) {}

    /// Checks the configuration of a reload, before anything changes.
    ///
    /// # Errors
    ///
    /// A message that names what is invalid and the correction.
    fn check_configuration(&self, _configuration: &Configuration) -> Result<(), String> {
        Ok(())
    }

    /// A reload has applied this configuration.
    fn use_configuration(&self, _configuration: &Configuration) {}

    /// Rows of sessions were changed or removed; `None`: too many to list.
    fn end_logins(&self, _rows: Option<&[RowId]>) {}

    /// The rights of users have changed: open pages and suspended responses are checked again.
    fn change_rights(&self) {}

    /// An account is removed in this transaction: removes what the subsystem stores about its user,
    /// so that a later account of the same name does not inherit it.
    ///
    /// # Errors
    ///
    /// A row cannot be removed; the account stays then.
    fn remove_user(&self, _change: &mut Transaction, _user: &str) -> Result<(), store::Error> {
        Ok(())
    }

    /// A user is blocked, or the account gets a different owner, in this transaction: removes the
    /// user's credentials besides sessions, so that no client acts as the user any more.
    ///
    /// # Errors
    ///
    /// A row cannot be removed; then all rows remain.
    fn revoke_credentials(
        &self,
        _change: &mut Transaction,
        _user: &str,
    ) -> Result<(), store::Error> {
        Ok(())
    }

    /// The user that this name means, as the account of the subsystem spells it; `None`: no such
    /// account.
    fn find_user(&self, _name: &str) -> Option<Text> {
        None
    }

    /// Runs a command of the control socket, split into words; `None`: it is not one of its
    /// commands. The call may block; commands run one at a time.
    fn command(&self, _words: &[String]) -> Option<Result<String, String>> {
        None
    }

    /// Writes its metrics.
    fn write_metrics(&self, _text: &mut PrometheusText) {}

    /// A line for standard output about its own address, once the server accepts clients.
    fn announcement(&self) -> Option<String> {
        None
    }

    /// Describes its work that runs now in the background, in a few words. The server logs it when
    /// a stop takes too long.
    fn unfinished_work(&self) -> Option<String> {
        None
    }

    /// The server was told to stop. It serves on for `leave-time`, which may be zero, and then stops.
    /// The call must not block.
    fn leave(&self) {}

    /// Stops. The server has stopped already.
    fn stop(&self) {}

    /// The reason why the program cannot continue, after which it ends as failed, so that a
    /// supervisor starts it again. The subsystem stops the server first.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// The parts of a program that decide what its subsystems have to do.
pub(crate) struct Outline<'p> {
    pub(crate) routes: &'p [Route],
    /// The access rule of services without one of their own.
    pub(crate) default_rule: AccessRule,
    /// Whether the layout takes the logged-in user.
    pub(crate) layout_takes_user: bool,
    /// Whether the program has its own tables.
    pub(crate) has_tables: bool,
    /// Whether its pages may have actions.
    pub(crate) has_actions: bool,
    /// Whether a subsystem needs sessions.
    pub(crate) needs_sessions: bool,
    /// The access rules that a subsystem declares.
    pub(crate) declared_rules: Option<Arc<DeclaredRules>>,
}

/// The parts that subsystems add to a program.
pub(crate) struct Definition {
    /// Values that handlers and other subsystems find by their type.
    pub(crate) states: States,
    /// Handlers with paths of their own.
    pub(crate) mounts: Vec<Mount>,
    /// Handlers of paths without a route of the program, which precede its files.
    pub(crate) fallbacks: Vec<Fallback>,
    /// Functions that are not routes and take arguments as handlers do, each with its name in
    /// messages.
    pub(crate) functions: Vec<(&'static str, Needs)>,
    pub(crate) running: Vec<Arc<dyn Running>>,
    /// Decides under overload which clients are admitted; `None`: all.
    pub(crate) admission: Option<Arc<dyn AdmissionPolicy>>,
    /// Decides which users may use which paths; `None`: no path has a rule.
    pub(crate) guard: Option<Arc<dyn AccessGuard>>,
    /// Paths that stay open to everyone unless a rule names exactly this path.
    pub(crate) open_paths: Vec<Cow<'static, str>>,
    /// Paths with parts that no log shows, as [`SecretTargets`](bine_log::SecretTargets) reads them.
    pub(crate) secret_paths: Vec<Cow<'static, str>>,
    /// How the names of users are compared in rules and groups.
    pub(crate) names: NameComparison,
    /// Filters that precede those of the program.
    pub(crate) filters: Vec<Box<dyn Filter>>,
    /// Stages that change the responses of the program as bytes.
    pub(crate) response_stages: Vec<Arc<dyn ResponseStage>>,
    /// The scheduler that replaces the one that the configuration names.
    pub(crate) scheduler: Option<Arc<dyn Scheduler>>,
    /// Finds the users of credentials; `None`: clients are identified by cookies only.
    pub(crate) credentials: Option<Arc<dyn CredentialSource>>,
    /// Lists the nodes of the program; `None`: it runs on one machine.
    pub(crate) nodes: Option<Arc<dyn NodeDirectory>>,
    /// Issues certificates; `None`: there are only those in files.
    pub(crate) authority: Option<Arc<dyn CertificateAuthority>>,
    /// Whether the response of a pending handler may need the request.
    pub(crate) may_need_request: bool,
    /// Whether a middleware of the program's own runs before the handler.
    pub(crate) has_middleware: bool,
    /// Whether the data of this node may be old. One subsystem may set it.
    pub(crate) staleness: Arc<Staleness>,
}

/// A handler of a subsystem, and its paths. It precedes the routes of the program.
#[derive(Clone)]
pub(crate) struct Mount {
    /// The name of the handler in the access log.
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    /// Whether all paths below `path` belong to it too.
    pub(crate) has_descendants: bool,
    /// Whether admission control applies.
    pub(crate) is_gated: bool,
    pub(crate) handler: Arc<dyn MountedHandler>,
}

/// A handler of a subsystem that chooses its paths itself, among those without a route.
#[derive(Clone)]
pub(crate) struct Fallback {
    /// The name of the handler in the access log.
    pub(crate) name: &'static str,
    pub(crate) handler: Arc<dyn MountedHandler>,
}

/// A request handler of a subsystem.
pub(crate) trait MountedHandler: Send + Sync {
    /// Whether a request at one of its paths is for this handler, not for the program.
    fn accepts(&self, _path: &str, _request: &Incoming<'_>) -> bool {
        true
    }

    /// Answers a request.
    fn respond(
        &self,
        path: &str,
        request: &Incoming<'_>,
        app: &Arc<AppState>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Answer;
}

/// The parts of a program that its subsystems share while it runs.
pub(crate) struct Shared {
    pub(crate) tables: Arc<Tables>,
    pub(crate) health: Health,
    /// Whether the data of this node may be old.
    pub(crate) staleness: Arc<Staleness>,
    /// Lets clients read their own changes on all nodes; empty in a program on one machine.
    pub(crate) positions: OnceLock<Arc<ReadPositions>>,
    pub(crate) running: Box<[Arc<dyn Running>]>,
    /// Reloads the configuration; empty in a program without one.
    pub(crate) reload: OnceLock<ReloadFunction>,
}

/// Reloads the configuration, and returns what a reader should know, or why nothing has changed. It
/// may block.
pub(crate) type ReloadFunction = Box<dyn Fn() -> Result<String, String> + Send + Sync>;

impl Shared {
    pub(crate) fn new(
        tables: Arc<Tables>,
        running: Vec<Arc<dyn Running>>,
        staleness: Arc<Staleness>,
    ) -> Self {
        Self {
            tables,
            health: Health::new(Arc::clone(&staleness)),
            staleness,
            positions: OnceLock::new(),
            running: running.into(),
            reload: OnceLock::new(),
        }
    }

    /// The user that a name means, in the spelling of its account; a name without an account is its
    /// own.
    pub(crate) fn user_named(&self, name: &str) -> Text {
        let found = self.running.iter().find_map(|running| running.find_user(name));
        found.unwrap_or_else(|| name.into())
    }

    /// Passes a description of each kind of work that runs now in the background.
    pub(crate) fn describe_unfinished_work(&self, tell: &mut dyn FnMut(String)) {
        self.tables.unfinished_work().into_iter().for_each(&mut *tell);
        self.running.iter().filter_map(|running| running.unfinished_work()).for_each(tell);
    }
}

/// The state of a program during its start.
pub(crate) struct Start<'s> {
    pub(crate) configuration: &'s Configuration,
    pub(crate) server: &'s Arc<Server>,
    pub(crate) handler: &'s Arc<dyn Handler>,
    pub(crate) app: &'s Arc<AppState>,
    pub(crate) shared: &'s Arc<Shared>,
}

impl Definition {
    pub(crate) fn new(states: States, has_middleware: bool) -> Self {
        Self {
            states,
            mounts: Vec::new(),
            fallbacks: Vec::new(),
            functions: Vec::new(),
            running: Vec::new(),
            admission: None,
            guard: None,
            open_paths: Vec::new(),
            secret_paths: Vec::new(),
            names: NameComparison::default(),
            filters: Vec::new(),
            response_stages: Vec::new(),
            scheduler: None,
            credentials: None,
            nodes: None,
            authority: None,
            may_need_request: false,
            has_middleware,
            staleness: Arc::default(),
        }
    }

    /// Passes parts between subsystems, once all have added theirs.
    pub(crate) fn connect(&mut self, sessions: Option<&Arc<dyn SessionProvider>>) {
        if let Some(guard) = &self.guard {
            guard.compare_names(self.names);
            guard.keep_open(std::mem::take(&mut self.open_paths));
        }
        if let Some((sessions, source)) = sessions.zip(self.credentials.as_ref()) {
            sessions.use_credentials(Arc::clone(source));
        }
    }
}

impl Mount {
    /// Whether a request for this path belongs to the handler.
    #[inline]
    pub(crate) fn owns(&self, path: &str, request: &Incoming<'_>) -> bool {
        let is_path = match path.strip_prefix(self.path) {
            Some("") => true,
            Some(rest) => self.has_descendants && rest.starts_with('/'),
            None => false,
        };
        is_path && self.handler.accepts(path, request)
    }
}

impl Start<'_> {
    /// The store, in a program with tables, channels or sessions.
    pub(crate) fn store(&self) -> Option<&Store> {
        self.shared.tables.opened()
    }
}

/// The subsystems of one program, in the order of their start.
pub(crate) struct Subsystems(Vec<Box<dyn Subsystem>>);

impl Default for Subsystems {
    fn default() -> Self {
        let create = |registration: &Registration| (registration.create)();
        Self(registrations().into_iter().map(create).collect())
    }
}

impl Subsystems {
    /// The subsystem of this type.
    ///
    /// # Panics
    ///
    /// It is not registered.
    pub(crate) fn get_mut<S: Subsystem>(&mut self) -> &mut S {
        let mut all = self.0.iter_mut().map(|one| one.as_mut() as &mut dyn Any);
        all.find_map(|one| one.downcast_mut()).expect("the module of the subsystem registers it")
    }

    /// Applies the configuration of the start.
    pub(crate) fn configure(&mut self, configuration: &Configuration) {
        self.iter_mut().for_each(|one| one.configure(configuration));
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut (dyn Subsystem + 'static)> {
        self.0.iter_mut().map(|one| &mut **one)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn Subsystem> {
        self.0.iter().map(|one| &**one)
    }

    /// The access rules that a subsystem declares.
    pub(crate) fn declared_rules(&self) -> Option<Arc<DeclaredRules>> {
        self.iter().find_map(Subsystem::declared_rules)
    }

    /// Runs a step of all subsystems, up to the first error.
    pub(crate) fn each(
        &mut self,
        step: impl FnMut(&mut dyn Subsystem) -> Result<(), String>,
    ) -> Result<(), String> {
        self.iter_mut().map(|one| one as &mut dyn Subsystem).try_for_each(step)
    }
}

/// All registrations, in the order of the start.
pub(crate) fn registrations() -> Vec<&'static Registration> {
    let mut all: Vec<_> = inventory::iter::<Registration>.into_iter().collect();
    all.sort_by_key(|registration| registration.rank);
    all
}

#[cfg(test)]
mod tests {
    //! The order of the registered subsystems.

    use super::*;

    #[test]
    fn starts_subsystems_in_an_order_that_the_linker_cannot_change() {
        let ranks: Vec<_> = registrations().iter().map(|registration| registration.rank).collect();
        assert!(ranks.is_sorted_by(|rank, next| rank < next), "two have the same rank: {ranks:?}");
    }
}
