//! Configuration reload of a running server, which applies completely or not at all.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bine_http::SecurityHeaders;
use bine_log as log;
use bine_log::{Format, LogSettings, SecretTargets, WhenFull, Writer};
use bine_server::tls::Tls;
use bine_server::{
    AccessSettings, Address, Handler, Server, is_supervised, notify, notify_reloading,
};

use crate::authority::CertificatePlan;
use crate::configuration::{Configuration, Logs, Sources};
use crate::hosts::Hosts;
use crate::program::{Pages, Program, Redirect};
use crate::response_stage::ResponseStage;
use crate::security::HSTS;
use crate::sites::Sites;
use crate::subsystem::Shared;
use crate::tls_state::{TlsSetup, TlsState};

/// The part of a program that does not depend on the configuration.
pub(crate) struct ProgramDefinition {
    pub(crate) pages: Arc<Pages>,
    /// The folder of a site without its own folder.
    pub(crate) folder: Option<PathBuf>,
    /// Certificates and keys for TLS.
    pub(crate) tls_state: TlsState,
    /// The program's middleware.
    pub(crate) middleware: Option<Middleware>,
    /// The stages that change responses as bytes.
    pub(crate) response_stages: Vec<Arc<dyn ResponseStage>>,
    /// The parts of request targets that no log shows.
    pub(crate) secrets: SecretTargets,
}

/// Wraps the program's own handler.
pub(crate) type Middleware = Box<dyn Fn(Arc<dyn Handler>) -> Arc<dyn Handler> + Send + Sync>;

/// The server's parts, created from a configuration before the server uses them.
pub(crate) struct ConfiguredParts {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) access: Option<AccessSettings>,
    pub(crate) tls: Option<Arc<Tls>>,
    /// Certificates to order from an authority once the server runs with these parts.
    pub(crate) plan: Option<CertificatePlan>,
    /// The security headers of each response.
    pub(crate) security: SecurityHeaders,
    /// The max-age of Strict-Transport-Security, in seconds.
    pub(crate) hsts: u32,
}

impl ConfiguredParts {
    /// Opens the folders and logs. A log that `older` has open is reused.
    ///
    /// # Errors
    ///
    /// Returns the name of a folder or file that cannot be opened, and the reason.
    pub(crate) fn of(
        configuration: &Configuration,
        definition: &ProgramDefinition,
        older: Option<&CurrentLogs>,
    ) -> Result<Self, String> {
        let sites =
            Sites::open(&configuration.site, &configuration.sites, definition.folder.as_deref())?;
        if definition.pages.are_none() && !sites.have_files() {
            return Err("nothing to serve: name a folder, or set `root`".to_owned());
        }
        let access = access(&configuration.logs, &definition.secrets, older)?;
        let TlsSetup { tls, plan, facts } = definition.tls_state.of(configuration)?;
        let https = https(configuration, facts.is_public);
        let hsts = configuration.hsts.unwrap_or(if facts.is_public { HSTS } else { 0 });
        let own_hosts = configuration.sites.iter().flat_map(|(hosts, _)| hosts).cloned();
        let listeners = &configuration.settings.listeners;
        let hosts = Hosts::of(&configuration.hosts, facts.names, own_hosts, listeners);
        let security = definition.pages.secure(&configuration.headers);
        let authority = plan.as_ref().and_then(|_| definition.tls_state.authority()).cloned();
        let pages = Arc::clone(&definition.pages);
        let own = Arc::new(Program::new(
            pages,
            sites,
            https,
            Arc::new(hosts),
            authority,
            configuration.health,
        ));
        let handler = match &definition.middleware {
            Some(middleware) => middleware(own),
            None => own,
        };
        let stages = definition.response_stages.iter();
        let handler = stages.fold(handler, |handler, stage| stage.wrap(handler, configuration));
        Ok(Self { handler, access, tls, plan, security, hsts })
    }
}

/// The HTTPS redirect for clients without TLS, if it is enabled.
fn https(configuration: &Configuration, is_public: bool) -> Option<Redirect> {
    let spares_local = configuration.redirects_to_https.is_none();
    if !configuration.redirects_to_https.unwrap_or(is_public) {
        return None;
    }
    let secure = configuration.settings.listeners.iter().filter(|listen| listen.tls);
    let needs_report = secure.clone().next().is_none();
    let mut ports =
        secure.filter(|listen| !listen.proxy).filter_map(|listen| match listen.address {
            Address::Tcp(address) => Some(address.port()),
            Address::Unix(_) | Address::Inherited(_) => None,
        });
    // An inherited socket belongs to a service manager or proxy, which uses the default port, as
    // does a proxy that has the only address with TLS.
    Some(Redirect { port: ports.next().unwrap_or(443), spares_local, needs_report })
}

/// Opens the access log. If `older` has it open with the same rule, reuses it.
fn access(
    logs: &Logs,
    secrets: &SecretTargets,
    older: Option<&CurrentLogs>,
) -> Result<Option<AccessSettings>, String> {
    let Some(path) = &logs.access else { return Ok(None) };
    let format = Arc::new(Format::parse(&logs.format)?.with_secrets(secrets.clone()));
    let is_same = |older: &&CurrentLogs| {
        older.logs.access == logs.access && older.logs.when_full == logs.when_full
    };
    let open = older.filter(is_same).and_then(|older| older.access.as_ref());
    let writer = match open {
        Some(open) => Arc::clone(&open.writer),
        None => {
            let when_full = if logs.when_full == "wait" { WhenFull::Wait } else { WhenFull::Drop };
            let settings = LogSettings { when_full, ..LogSettings::at(path) };
            Writer::open(settings).map_err(|error| error.to_string())?
        }
    };
    Ok(Some(AccessSettings { writer, format }))
}

/// Sets the destination and the level of the server's own log.
///
/// # Errors
///
/// Returns an error if the log cannot be opened; the previous settings remain.
pub(crate) fn apply_log_settings(logs: &Logs) -> Result<(), String> {
    match &logs.error {
        Some(path) => log::to_file(path).map_err(|error| error.to_string())?,
        None => log::to_standard_error(),
    }
    log::set_level(logs.level.parse()?);
    Ok(())
}

/// The current logs of a server. A reload reuses those that do not change.
pub(crate) struct CurrentLogs {
    logs: Logs,
    access: Option<AccessSettings>,
}

/// Reloads the configuration of one server.
pub(crate) struct Reloader {
    sources: Sources,
    definition: ProgramDefinition,
    /// A weak reference: the threads that reload never end and would keep the server alive forever.
    server: Weak<Server>,
    /// The configuration at the start: settings that need a restart keep these values.
    started: Configuration,
    current: Mutex<CurrentLogs>,
}

impl Reloader {
    /// Creates a reloader for `server`, which runs under `started` with `access`.
    pub(crate) fn new(
        sources: Sources,
        definition: ProgramDefinition,
        server: &Arc<Server>,
        started: Configuration,
        access: Option<AccessSettings>,
    ) -> Self {
        let server = Arc::downgrade(server);
        let current = Mutex::new(CurrentLogs { logs: started.logs.clone(), access });
        Self { sources, definition, server, started, current }
    }

    /// The server, while it runs.
    pub(crate) fn server(&self) -> Option<Arc<Server>> {
        self.server.upgrade()
    }

    /// The parts of the program that its subsystems share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.definition.pages.shared()
    }

    /// Orders the certificates of this plan.
    ///
    /// # Errors
    ///
    /// The thread for it cannot be created.
    pub(crate) fn pursue(&self, plan: Option<CertificatePlan>) -> Result<(), String> {
        self.definition.tls_state.pursue(plan)
    }

    /// Reads the same file, environment and arguments as at the start. When this returns, the
    /// settings apply to new connections; the returned text lists settings that need a restart.
    /// Both outcomes are logged.
    ///
    /// # Errors
    ///
    /// Returns the fault and its place; the previous settings remain.
    pub(crate) fn reload(&self) -> Result<String, String> {
        notify_reloading();
        let outcome = self.replace();
        notify("READY=1");
        match &outcome {
            Ok(told) => {
                log::notice(format_args!("reloaded"));
                told.lines().for_each(|line| log::warn(format_args!("reload: {line}")));
            }
            Err(reason) => log::error(format_args!("reload: {reason}; nothing has changed")),
        }
        outcome
    }

    fn replace(&self) -> Result<String, String> {
        let Some(server) = self.server() else { return Err("the server has ended".to_owned()) };
        // Two concurrent reloads would both compare with the same old settings.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.sources.read()?;
        let running = &self.shared().running;
        running.iter().try_for_each(|one| one.check_configuration(&next))?;
        let parts = ConfiguredParts::of(&next, &self.definition, Some(&current))?;
        let mut fixed = self.started.needs_restart(&next);
        let mut settings = next.settings.clone();
        settings.tls = parts.tls;
        (settings.security, settings.hsts) = (parts.security, parts.hsts);
        if is_supervised() && settings.listeners != self.started.settings.listeners {
            // The supervisor owns the sockets.
            settings.listeners.clone_from(&self.started.settings.listeners);
            fixed.insert(0, "listen");
        }
        let is_log_new =
            next.logs.error != current.logs.error || next.logs.level != current.logs.level;
        if is_log_new {
            apply_log_settings(&next.logs)?;
        }
        let handler = Arc::clone(&parts.handler);
        if let Err(error) = server.replace(settings, parts.handler, parts.access.clone()) {
            let restored = if is_log_new { apply_log_settings(&current.logs) } else { Ok(()) };
            return match restored {
                Ok(()) => Err(error.to_string()),
                Err(reason) => Err(format!("{error}; and cannot return to the old log: {reason}")),
            };
        }
        self.definition.pages.develop(next.development);
        self.definition.pages.use_handler(&handler);
        for running in running {
            running.use_configuration(&next);
            running.use_handler(&handler);
        }
        self.definition.tls_state.pursue(parts.plan)?;
        *current = CurrentLogs { logs: next.logs, access: parts.access };
        let fixed = fixed.into_iter().map(|name| format!("{name} needs a restart\n"));
        let warnings = next.warnings.into_iter().map(|warning| warning + "\n");
        Ok(fixed.chain(warnings).collect())
    }
}
