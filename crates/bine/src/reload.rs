//! Decides how a server that runs is given another configuration: wholly, or not at all (document 002
//! section 6).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bine_http::SecurityHeaders;
use bine_log::{self as log, Format, LogSettings, WhenFull, Writer};
use bine_server::tls::Tls;
use bine_server::{
    AccessSettings, Address, Handler, Server, is_supervised, notify, notify_reloading,
};

use crate::acme::Plan;
use crate::configuration::{Configuration, Logs, Sources};
use crate::hosts::Hosts;
use crate::program::{Pages, Program, Redirect};
use crate::secrecy::{Secrets, Shown};
use crate::security::HSTS;
use crate::sites::Sites;

/// What a program is, whatever its configuration.
pub(crate) struct Blueprint {
    pub(crate) pages: Arc<Pages>,
    /// The files of a site that has no folder of its own.
    pub(crate) folder: Option<PathBuf>,
    /// What it needs to speak TLS.
    pub(crate) secrets: Secrets,
    /// What the program has put in place of its step from request to response.
    pub(crate) step: Option<Step>,
}

/// Makes another handler of the program's own.
pub(crate) type Step = Box<dyn Fn(Arc<dyn Handler>) -> Arc<dyn Handler> + Send + Sync>;

/// What is made of a configuration before a server has it.
pub(crate) struct Parts {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) access: Option<AccessSettings>,
    pub(crate) tls: Option<Arc<Tls>>,
    /// Certificates to be had from an authority once the server has all this.
    pub(crate) plan: Option<Plan>,
    /// Security headers of each response.
    pub(crate) security: SecurityHeaders,
    /// Seconds of Strict-Transport-Security.
    pub(crate) hsts: u32,
}

impl Parts {
    /// Opens the folders and logs. A log that `older` has open already is the same.
    ///
    /// # Errors
    ///
    /// What cannot be opened, by name.
    pub(crate) fn of(
        configuration: &Configuration,
        blueprint: &Blueprint,
        older: Option<&Current>,
    ) -> Result<Self, String> {
        let sites =
            Sites::open(&configuration.site, &configuration.sites, blueprint.folder.as_deref())?;
        if blueprint.pages.are_none() && !sites.have_files() {
            return Err("nothing to serve: name a folder, or set `root`".to_owned());
        }
        let access = access(&configuration.logs, older)?;
        let Shown { tls, plan, facts } = blueprint.secrets.of(configuration)?;
        let https = https(configuration, facts.is_public);
        let hsts = configuration.hsts.unwrap_or(if facts.is_public { HSTS } else { 0 });
        let own_hosts = configuration.sites.iter().flat_map(|(hosts, _)| hosts).cloned();
        let listeners = &configuration.settings.listeners;
        let hosts = Hosts::of(&configuration.hosts, facts.names, own_hosts, listeners);
        let security = blueprint.pages.secure(&configuration.headers);
        blueprint.pages.develop(configuration.development);
        let proofs = plan.is_some().then(|| Arc::clone(&blueprint.secrets.acme));
        let pages = Arc::clone(&blueprint.pages);
        let own = Arc::new(Program::new(
            pages,
            sites,
            https,
            Arc::new(hosts),
            proofs,
            configuration.health,
        ));
        let handler = match &blueprint.step {
            Some(step) => step(own),
            None => own,
        };
        Ok(Self { handler, access, tls, plan, security, hsts })
    }
}

/// The port where who comes without TLS is sent, if that is wished.
fn https(configuration: &Configuration, is_public: bool) -> Option<Redirect> {
    let spares_local = configuration.redirects_to_https.is_none();
    if !configuration.redirects_to_https.unwrap_or(is_public) {
        return None;
    }
    let secure = configuration.settings.listeners.iter().filter(|listen| listen.tls);
    let mut ports = secure.filter_map(|listen| match listen.address {
        Address::Tcp(address) => Some(address.port()),
        Address::Unix(_) | Address::Inherited(_) => None,
    });
    // One that was passed to us is behind somebody who knows the usual port.
    Some(Redirect { port: ports.next().unwrap_or(443), spares_local })
}

/// The access log. One that `older` has open already, with the same rule, is the same.
fn access(logs: &Logs, older: Option<&Current>) -> Result<Option<AccessSettings>, String> {
    let Some(path) = &logs.access else { return Ok(None) };
    let format = Arc::new(Format::parse(&logs.format)?);
    let is_same = |older: &&Current| {
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

/// Lets the server tell of itself where, and as much as, is wanted.
///
/// # Errors
///
/// The log's place, if it cannot be opened; nothing has changed then.
pub(crate) fn tell_where_wanted(logs: &Logs) -> Result<(), String> {
    match &logs.error {
        Some(path) => log::to_file(path).map_err(|error| error.to_string())?,
        None => log::to_standard_error(),
    }
    log::set_level(logs.level.parse()?);
    Ok(())
}

/// The logs of a server, of which a reload keeps what is the same.
pub(crate) struct Current {
    logs: Logs,
    access: Option<AccessSettings>,
}

/// Reads the configuration of one server again.
pub(crate) struct Reloader {
    sources: Sources,
    blueprint: Blueprint,
    /// Weakly, or the threads that reload, which never end, would keep the server for ever.
    server: Weak<Server>,
    /// As it was at the start: what needs a restart is so still.
    started: Configuration,
    current: Mutex<Current>,
}

impl Reloader {
    /// For `server`, which runs under `started` with `access`.
    pub(crate) fn new(
        sources: Sources,
        blueprint: Blueprint,
        server: &Arc<Server>,
        started: Configuration,
        access: Option<AccessSettings>,
    ) -> Self {
        let server = Arc::downgrade(server);
        let current = Mutex::new(Current { logs: started.logs.clone(), access });
        Self { sources, blueprint, server, started, current }
    }

    /// The server, while there is one.
    pub(crate) fn server(&self) -> Option<Arc<Server>> {
        self.server.upgrade()
    }

    /// Reads the same file, environment and arguments as at the start. What cannot change is told; the
    /// rest is in force for newcomers when this returns. Both outcomes go to the log as well.
    ///
    /// # Errors
    ///
    /// What is wrong, and where; nothing has changed then.
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
        // Two at one time would each take the other's for the old one.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.sources.read()?;
        let parts = Parts::of(&next, &self.blueprint, Some(&current))?;
        let mut fixed = self.started.needs_restart(&next);
        let mut settings = next.settings;
        settings.tls = parts.tls;
        (settings.security, settings.hsts) = (parts.security, parts.hsts);
        if is_supervised() && settings.listeners != self.started.settings.listeners {
            // The parent has the sockets.
            settings.listeners.clone_from(&self.started.settings.listeners);
            fixed.insert(0, "listen");
        }
        if next.logs.error != current.logs.error || next.logs.level != current.logs.level {
            tell_where_wanted(&next.logs)?;
        }
        let handler = Arc::clone(&parts.handler);
        server
            .replace(settings, parts.handler, parts.access.clone())
            .map_err(|error| error.to_string())?;
        self.blueprint.pages.live().serve_with(&handler);
        self.blueprint.secrets.acme.pursue(parts.plan)?;
        *current = Current { logs: next.logs, access: parts.access };
        let fixed = fixed.into_iter().map(|name| format!("{name} needs a restart\n"));
        let doubts = next.doubts.into_iter().map(|doubt| doubt + "\n");
        Ok(fixed.chain(doubts).collect())
    }
}
