//! The applications as a subsystem of a program: its method of [`App`], its routes and its start.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bine_log as log;

use super::application::Application;
use super::channel_scope::ApplicationScope;
use super::channels::segment_of;
use super::folders;
use super::new_applications::NewApplications;
use super::routes::routes;
use super::service::ScriptServices;
use super::source_check;
use super::start::{self, ScriptFilter, ScriptScheduler, StartScript};
use super::watcher::Watcher;
use crate::access_guard::DeclaredRules;
use crate::app::App;
use crate::channels::{CHANNELS_PATH, ChannelScope, ChannelScopes};
use crate::configuration::Configuration;
use crate::exit::Exit;
use crate::listing::Listed;
use crate::methods::Methods;
use crate::route::Route;
use crate::service::in_process::{OtherServices, ServiceDirectory};
use crate::service::type_declarations;
use crate::subsystem::{Definition, Outline, Registration, Running, Start, Subsystem};

/// The applications of a program that has not started.
#[derive(Default)]
struct ScriptSubsystem {
    /// The folder of the site, if the program names it.
    folder: Option<PathBuf>,
    /// Whether the folder of the site's files may have applications.
    in_root: bool,
    applications: Vec<Arc<Application>>,
    /// The start script of the folder.
    script: Option<Arc<StartScript>>,
    /// How many requests run and wait under a scheduler of the script, and for how long they wait.
    capacity: Capacity,
    /// Set at the start in development.
    watcher: Arc<OnceLock<Watcher>>,
    /// Set with the applications.
    new: Option<Arc<NewApplications>>,
    /// The folder in which the applications were searched.
    searched: Option<PathBuf>,
    /// The services of the program in Rust.
    rust_services: ServiceDirectory,
    /// Why the applications could not be found.
    failure: Option<String>,
}

/// The settings of the server that a scheduler follows.
#[derive(Default)]
struct Capacity {
    workers: usize,
    queue: usize,
    patience: Duration,
}

/// The data folder of a site with applications, in the folder of the site. No file of a folder with
/// such a name is served.
const DATA: &str = ".bine/data";

inventory::submit! {
    Registration { rank: 16, create: || Box::new(ScriptSubsystem::default()) }
}

impl App {
    /// Adds the applications in TSX of a folder: each folder in it with an `index.tsx` is an
    /// application at its URL.
    pub fn scripts(mut self, folder: impl Into<PathBuf>) -> Self {
        self.subsystems.get_mut::<ScriptSubsystem>().folder = Some(folder.into());
        self
    }

    /// Adds the applications in TSX of the folder that the setting `root` names.
    pub fn scripts_in_root(mut self) -> Self {
        self.subsystems.get_mut::<ScriptSubsystem>().in_root = true;
        self
    }
}

impl ScriptSubsystem {
    fn find(&mut self, root: &Path) -> Result<(), String> {
        let found = folders::find(root)?;
        let own = found.into_iter().map(|app| Application::new(root, app).map(Arc::new));
        self.applications = own.collect::<Result<_, _>>()?;
        self.new = Some(Arc::new(NewApplications::new(root, &self.applications)));
        self.script = StartScript::open(root)?;
        Ok(())
    }

    /// The applications as parts of the program with channels of their own; `None`: the address of
    /// channels has other content.
    fn channel_scopes(&self) -> Option<ChannelScopes> {
        let taken = self.applications.iter().find(|app| has_page(app, CHANNELS_PATH));
        let is_folder = self.searched.as_ref().map(|root| root.join(&CHANNELS_PATH[1..]));
        let is_taken = taken.is_some() || is_folder.is_some_and(|folder| folder.exists());
        for (at, app) in self.applications.iter().enumerate() {
            let segment = segment_of(&app.listing(None).app);
            let has_segment =
                |other: &&Arc<Application>| segment_of(&other.listing(None).app) == segment;
            let mut others = self.applications[..at].iter().chain(&self.applications[at + 1..]);
            let conflict = if is_taken {
                "the site has a page, a folder or a file at /channels, which is the address of channels: give it another name".to_owned()
            } else if let Some(other) = others.find(has_segment) {
                format!(
                    "the channels of this application would have the names of those of {}: give one of both another `name` in app.toml",
                    other.name()
                )
            } else {
                continue;
            };
            // The program starts once.
            let _ = app.channel_conflict.set(conflict.into());
        }
        let scope = |app: &Arc<Application>| -> Arc<dyn ChannelScope> {
            Arc::new(ApplicationScope(Arc::clone(app)))
        };
        (!is_taken).then(|| ChannelScopes(self.applications.iter().map(scope).collect()))
    }
}

impl Subsystem for ScriptSubsystem {
    fn needs_store(&self, _outline: &Outline<'_>) -> bool {
        !self.applications.is_empty()
    }

    fn has_content(&self) -> bool {
        self.folder.is_some() || !self.applications.is_empty()
    }

    fn configure(&mut self, configuration: &Configuration) {
        let in_root = || configuration.site.root.clone().filter(|_| self.in_root);
        let Some(root) = self.folder.clone().or_else(in_root) else { return };
        let settings = &configuration.settings;
        self.capacity = Capacity {
            workers: settings.workers,
            queue: settings.queue,
            patience: settings.timeouts.queue,
        };
        if self.searched.as_ref() == Some(&root) {
            return;
        }
        // The folder of the site's files is opened later, which tells what is wrong with it.
        if self.folder.is_none() && !root.is_dir() {
            return;
        }
        self.failure = self.find(&root).err();
        self.searched = Some(root);
    }

    fn default_data(&self) -> Option<PathBuf> {
        let is_used = !self.applications.is_empty() || self.declared_rules().is_some();
        let root = self.searched.as_ref().filter(|_| is_used)?;
        Some(root.join(DATA))
    }

    fn declared_rules(&self) -> Option<Arc<DeclaredRules>> {
        self.script.as_ref()?.rules()
    }

    fn routes(&mut self, _outline: &Outline<'_>) -> Vec<Route> {
        self.applications.iter().flat_map(routes).collect()
    }

    fn needs_sessions(&self, _outline: &Outline<'_>) -> bool {
        !self.applications.is_empty()
    }

    fn list(&self, _outline: &Outline<'_>, listed: &mut Vec<Listed>) {
        if let Some(failure) = &self.failure {
            log::error(format_args!("{failure}"));
        }
        if let Some(script) = &self.script {
            script.list(listed);
        }
        for app in &self.applications {
            let listing = app.listing(None);
            let rule = listing.rule.name();
            for page in &listing.app.files {
                let path = format!("{}{}", app.url, page.pattern);
                let line = Listed::new(Methods::GET, &path, "page", &page.file);
                listed.push(line.rule(rule.to_owned()));
            }
        }
    }

    fn write_types(&self, outline: &Outline<'_>) -> Option<Result<String, String>> {
        let root = self.searched.as_ref().filter(|_| !self.applications.is_empty())?;
        Some(type_declarations::write(root, &ServiceDirectory::of(outline.routes)))
    }

    fn check_sources(&self, outline: &Outline<'_>, is_json: bool) -> Option<Exit> {
        // Sources that cannot be loaded have mistakes.
        let has_sources =
            self.failure.is_some() || !self.applications.is_empty() || self.script.is_some();
        let root = self.searched.as_ref().filter(|_| has_sources)?;
        let services = ServiceDirectory::of(outline.routes);
        let found = folders::find(root);
        Some(match found.and_then(|apps| source_check::check(root, apps, &services)) {
            Ok(check) => {
                let text = if is_json { check.json() } else { check.text() };
                if check.mistakes.is_empty() { Exit::output(text) } else { Exit::mistakes(text) }
            }
            Err(message) => Exit::failure(message),
        })
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some(script) = &self.script {
            script.use_guard(definition.guard.as_ref())?;
            definition.filters.push(Box::new(ScriptFilter(Arc::clone(script))));
            definition.mounts.push(start::mount(script));
            let Capacity { workers, queue, patience } = self.capacity;
            if let Some(dispatcher) = script.schedule(workers, queue) {
                self.applications.iter().for_each(|app| app.schedule(&dispatcher, patience));
                definition.scheduler = Some(Arc::new(ScriptScheduler(dispatcher)));
            }
            definition.running.push(Arc::new(RunningStart(Arc::clone(script))));
        }
        if let Some(new) = self.new.clone().filter(|_| !self.applications.is_empty()) {
            self.rust_services =
                definition.states.find::<ServiceDirectory>().cloned().unwrap_or_default();
            for app in &self.applications {
                // The program starts once.
                let _ = app.rust_services.set(self.rust_services.clone());
            }
            let services = ScriptServices(self.applications.clone());
            definition.states.add(OtherServices(Arc::new(services)));
            if let Some(scopes) = self.channel_scopes() {
                definition.states.add(scopes);
            }
            let applications = self.applications.clone();
            definition.running.push(Arc::new(RunningScripts { applications, new }));
        }
        definition.running.push(Arc::new(RunningWatcher(Arc::clone(&self.watcher))));
        Ok(())
    }

    fn start(&mut self, start: &Start<'_>) -> Result<(), String> {
        let develops = start.configuration.development.unwrap_or(cfg!(debug_assertions));
        if develops
            && let Some(root) = &self.searched
            && !self.rust_services.is_empty()
            && let Err(reason) = type_declarations::refresh(root, &self.rust_services)
        {
            log::warn(format_args!("{reason}; editors do not know the services in Rust"));
        }
        if develops && (!self.applications.is_empty() || self.script.is_some()) {
            let (applications, new) = (self.applications.clone(), self.new.clone());
            let watcher = Watcher::start(applications, new, self.script.clone())?;
            // The program starts once.
            let _ = self.watcher.set(watcher);
        }
        for app in &self.applications {
            if app.listing(None).app.settings.starts {
                // A failure is in the log; the other applications work.
                let _ = app.generation();
            }
        }
        Ok(())
    }
}

/// Whether an application has a page at this path or below it. A page with a parameter in its path
/// has other addresses too.
fn has_page(app: &Application, path: &str) -> bool {
    let is_within = |page: &str| {
        page.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let files = &app.listing(None).app.files;
    is_within(&app.url)
        || files.iter().any(|page| is_within(&format!("{}{}", app.url, page.pattern)))
}

/// The hooks of the applications while the program runs.
struct RunningScripts {
    applications: Vec<Arc<Application>>,
    new: Arc<NewApplications>,
}

impl Running for RunningScripts {
    fn use_configuration(&self, configuration: &Configuration) {
        let develops = configuration.development.unwrap_or(cfg!(debug_assertions));
        self.applications.iter().for_each(|app| app.reload(develops));
        self.new.report();
    }
}

/// The hooks of the start script while the program runs.
struct RunningStart(Arc<StartScript>);

impl Running for RunningStart {
    fn check_configuration(&self, _configuration: &Configuration) -> Result<(), String> {
        self.0.check()
    }

    fn use_configuration(&self, _configuration: &Configuration) {
        self.0.check_files();
    }
}

/// Stops the thread that looks for changes.
struct RunningWatcher(Arc<OnceLock<Watcher>>);

impl Running for RunningWatcher {
    fn stop(&self) {
        if let Some(watcher) = self.0.get() {
            watcher.stop();
        }
    }
}
