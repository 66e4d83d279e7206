//! The table of configuration keys, which the command line, the environment, the configuration file
//! and `--help` share.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use bine_admission as admission;

use bine_server::{BadProxy, Settings, User, scheduler};

use super::values::{
    bytes, listen, number, percent, seconds, sessions, set_time, set_time_or_off, span, switch,
    sync, word,
};
use super::{Configuration, Control};
use crate::nearest::nearest;
use crate::security::{Frames, Policy};
use crate::sites::{SiteChoices, exact_host, field_rule};

/// The keys of a subsystem, which registers them: `inventory::submit! { KeyGroup { .. } }`.
pub(crate) struct KeyGroup {
    pub(crate) keys: &'static [Key],
    /// The key of the web core after which `--help` lists them.
    pub(crate) after: &'static str,
    /// The position among several groups after the same key. Each has its own: the linker decides in
    /// which order groups arrive.
    pub(crate) rank: u8,
    /// Whether these settings give any program content, which is stored in the data folder.
    pub(crate) adds_content: fn(&Configuration) -> bool,
}

inventory::collect!(KeyGroup);

/// A configuration key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(super) name: &'static str,
    /// The form of its value.
    pub(super) value: &'static str,
    /// Empty: there is no default.
    pub(super) default: &'static [&'static str],
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    /// Whether a change requires a restart.
    pub(super) is_fixed: bool,
    pub(super) set: Set,
}

/// The form of a value in a file, and the separator of several values in an environment variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A text, or a number that may have a unit.
    Word,
    /// A path. In a file, a relative path is relative to the file's folder.
    Path,
    /// On or off.
    Switch,
    /// Several words; an environment variable separates them with spaces.
    Words,
    /// Several texts; an environment variable has one on each line.
    Lines,
    /// Several tables of a file; elsewhere one on each line, in words like `key=value`.
    Tables {
        /// The keys of a table whose values are paths, which a file may write relative to its folder.
        paths: &'static [&'static str],
    },
}

/// The part of the configuration that a key sets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Set {
    Server(fn(&mut Configuration, &str) -> Result<(), String>),
    Site(fn(&mut SiteChoices, &str) -> Result<(), String>),
}

/// Values of path keys that are not paths.
const NO_PATHS: [&str; 5] = ["off", "auto", "stderr", "stdout", "memory"];

impl Key {
    /// A key of the whole server, with one word as its value, which a reload may change.
    pub(crate) const fn server(
        name: &'static str,
        value: &'static str,
        default: &'static [&'static str],
        help: &'static str,
        set: fn(&mut Configuration, &str) -> Result<(), String>,
    ) -> Self {
        let set = Set::Server(set);
        Self { name, value, default, help, kind: Kind::Word, is_fixed: false, set }
    }

    /// A switch of one site.
    const fn site(
        name: &'static str,
        value: &'static str,
        default: &'static [&'static str],
        help: &'static str,
        set: fn(&mut SiteChoices, &str) -> Result<(), String>,
    ) -> Self {
        let set = Set::Site(set);
        Self { name, value, default, help, kind: Kind::Switch, is_fixed: false, set }
    }

    /// Sets the form of the value.
    pub(crate) const fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// A change of this key requires a restart.
    pub(crate) const fn fixed(self) -> Self {
        Self { is_fixed: true, ..self }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.kind, Kind::Words | Kind::Lines | Kind::Tables { .. })
    }

    /// Splits the value of an environment variable.
    pub(super) fn split<'t>(&self, text: &'t str) -> Box<dyn Iterator<Item = &'t str> + 't> {
        match self.kind {
            Kind::Words => Box::new(text.split_whitespace()),
            Kind::Lines | Kind::Tables { .. } => {
                Box::new(text.lines().filter(|line| !line.trim().is_empty()))
            }
            Kind::Word | Kind::Path | Kind::Switch => Box::new(std::iter::once(text)),
        }
    }

    /// Resolves a path in a file that is in `folder`, relative to the working directory.
    pub(super) fn beneath(&self, folder: &Path, text: String) -> String {
        if self.kind != Kind::Path || text.is_empty() || NO_PATHS.contains(&&*text) {
            return text;
        }
        folder.join(&text).to_str().map_or(text, ToOwned::to_owned)
    }
}

/// All keys, in the order of `--help`.
pub(super) static KEYS: LazyLock<Vec<&'static Key>> = LazyLock::new(|| {
    let mut groups: Vec<_> = groups().collect();
    groups.sort_by_key(|group| group.rank);
    let mut keys = Vec::new();
    for key in OWN {
        keys.push(key);
        let next = groups.iter().filter(|group| group.after == key.name);
        keys.extend(next.flat_map(|group| group.keys));
    }
    keys
});

/// The keys of the subsystems.
pub(super) fn groups() -> impl Iterator<Item = &'static KeyGroup> {
    inventory::iter::<KeyGroup>.into_iter()
}

/// The keys of the web core.
static OWN: &[Key] = &[
    Key::server(
        "listen",
        "ADDRESS",
        &["127.0.0.1:8080"],
        "HOST:PORT or unix:PATH to listen on, repeatable; options follow after commas: tls=on, proxy=on (PROXY protocol of trusted-proxies), backlog=4096, nodelay=on, send-buffer=BYTES",
        |c, v| {
            let (listen, has_tls_option) = listen(v)?;
            c.settings.listeners.push(listen);
            c.has_tls_option.push(has_tls_option);
            Ok(())
        },
    )
    .kind(Kind::Words),
    Key::server("scheduler", "NAME", &["hybrid"], "the scheduler of connections and handlers; `help` lists them", |c, v| {
        scheduler::check(v).map_err(|error| error.to_string())?;
        v.clone_into(&mut c.settings.scheduler);
        Ok(())
    })
    .fixed(),
    Key::server("loops", "N|auto", &["auto"], "event loops, each on its own thread; auto: one per core", |c, v| {
        c.settings.loops = if v == "auto" { Settings::default().loops } else { number(v, 1)? };
        Ok(())
    })
    .fixed(),
    Key::server(
        "workers",
        "N|auto",
        &["auto"],
        "threads for blocking handlers; auto: eight per core (8 to 64), up to 256 while requests wait and cores are idle; 256 with a scheduler that gives each connection a thread (pool, accept-many, queue)",
        |c, v| {
            // The key `scheduler` precedes this one, so its value is known.
            let usual = || Settings::usual_workers(&c.settings.scheduler);
            (c.settings.workers, c.settings.most_workers) = match v {
                "auto" => (usual(), Settings::default().most_workers),
                v => (number(v, 1)?, 0),
            };
            Ok(())
        },
    )
    .fixed(),
    Key::server("tls", "on|off|acme|self-signed", &["off"], "enable TLS at each address without an option tls=..; acme: certificates from an authority, whose terms you agree to; self-signed: a certificate for development", |c, v| {
        c.tls = word(v, &["on", "off", "acme", "self-signed"])?;
        Ok(())
    }),
    Key::site("certificate", "FILE", &[], "the certificate chain of a site, PEM", |s, v| {
        s.certificate = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::site("certificate-key", "FILE", &[], "the private key of the certificate, PEM", |s, v| {
        s.certificate_key = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::server("acme-host", "HOST", &[], "with tls=acme, a host name of the server itself, repeatable; sites use their `hosts`", |c, v| {
        c.acme.hosts.push(exact_host(v)?);
        Ok(())
    })
    .kind(Kind::Words),
    Key::server("acme-email", "ADDRESS", &[], "contact address for the certificate authority", |c, v| {
        if !v.contains('@') || v.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
            return Err("must be an address like me@example.org".to_owned());
        }
        c.acme.email = Some(v.to_owned());
        Ok(())
    }),
    Key::server("acme-directory", "URL", &["https://acme-v02.api.letsencrypt.org/directory"], "directory of the certificate authority (ACME, RFC 8555)", |c, v| {
        if !v.starts_with("https://") {
            return Err("must begin with https://".to_owned());
        }
        v.clone_into(&mut c.acme.directory);
        Ok(())
    }),
    Key::server("acme-roots", "FILE|auto", &["auto"], "root certificates to trust for the connection to the authority, PEM; auto: those of the system", |c, v| {
        c.acme.roots = (v != "auto").then(|| v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::server("https-redirect", "on|off|auto", &["auto"], "redirect clients without TLS to the first TLS address; auto: on with a public certificate, except for clients on this machine", |c, v| {
        c.redirects_to_https = if v == "auto" { None } else { Some(switch(v)?) };
        Ok(())
    }),
    Key::server("hsts", "TIME|off|auto", &["auto"], "max-age of Strict-Transport-Security, like 365d; auto: 180d with a public certificate", |c, v| {
        c.hsts = if v == "auto" { None } else { Some(seconds(v)?) };
        Ok(())
    }),
    Key::server("hosts", "HOST|any|auto", &["auto"], "hosts to answer for, repeatable: example.org, *.example.org; auto: those of the certificates; without certificates, names of this machine if all addresses are loopback, else any", |c, v| c.hosts.add(v))
    .kind(Kind::Words),
    Key::server("trusted-proxies", "ADDRESS|NETWORK|unix", &[], "proxies whose fields name the client, repeatable: 10.0.0.0/8, 2001:db8::5, or unix for Unix sockets", |c, v| {
        Arc::make_mut(&mut c.settings.proxies).add(v).map_err(|error| error.to_string())
    })
    .kind(Kind::Words),
    Key::server("proxy-fields", "x-forwarded|forwarded", &["x-forwarded"], "the fields of trusted proxies: X-Forwarded-For, -Proto and -Host, or Forwarded", |c, v| {
        Arc::make_mut(&mut c.settings.proxies).fields = v.parse().map_err(|error: BadProxy| error.to_string())?;
        Ok(())
    }),
    Key::server("nosniff", "on|off|auto", &["auto"], "send X-Content-Type-Options: nosniff with each response; auto: the program decides (default on)", |c, v| {
        c.headers.nosniff = if v == "auto" { None } else { Some(switch(v)?) };
        Ok(())
    }),
    Key::server("frames", "same-origin|deny|any|auto", &["auto"], "which pages may embed responses in frames (X-Frame-Options); auto: the program decides (default same-origin)", |c, v| {
        c.headers.frames = Frames::read(v)?;
        Ok(())
    }),
    Key::server("content-security-policy", "strict|off|POLICY|auto", &["auto"], "Content-Security-Policy of pages made by html!; auto: the program decides (default strict)", |c, v| {
        c.headers.policy = Policy::read(v)?;
        Ok(())
    })
    .fixed(),
    Key::server("http2", "on|off", &["on"], "let clients speak HTTP/2: over TLS, or by prior knowledge", |c, v| {
        c.settings.http2 = switch(v)?;
        Ok(())
    }),
    Key::server("handshakes", "N", &["512"], "concurrent TLS handshakes per loop; one IPv4 address or IPv6 /64 may have an eighth of all", |c, v| {
        c.settings.handshakes = number(v, 1)?;
        Ok(())
    }),
    Key::server("handshake-rate", "N|off", &["50"], "new TLS handshakes per second from one IPv4 address or IPv6 /64, with a burst of five seconds' worth; four times that from an IPv6 /48", |c, v| {
        c.settings.handshake_rate = if v == "off" { 0 } else { number(v, 1)? };
        Ok(())
    }),
    Key::site("root", "DIR", &[], "serve the files in this folder", |s, v| {
        s.root = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::site("index", "NAME", &["index.html"], "the file to serve for its folder, repeatable", |s, v| {
        if v.is_empty() || v.contains('/') {
            return Err("must be the name of a file, without a folder".to_owned());
        }
        s.index.push(v.to_owned());
        Ok(())
    })
    .kind(Kind::Words),
    Key::site("listing", "on|off", &["off"], "list the files of a folder without an index", |s, v| {
        s.listing = switch(v)?;
        Ok(())
    }),
    Key::site("precompressed", "on|off", &["on"], "send FILE.br, FILE.zst or FILE.gz in place of FILE to clients that accept it", |s, v| {
        s.precompressed = switch(v)?;
        Ok(())
    }),
    Key::site("hidden", "on|off", &["off"], "serve files whose names begin with a dot", |s, v| {
        s.hidden = switch(v)?;
        Ok(())
    }),
    Key::site(
        "field",
        "RULE",
        &[],
        "a header field for responses with a file, repeatable: '*.css Cache-Control: max-age=3600'",
        |s, v| {
            s.fields.push(field_rule(v)?);
            Ok(())
        },
    )
    .kind(Kind::Lines),
    Key::site("pages", "on|off", &["on"], "serve the program's pages in addition to the files", |s, v| {
        s.pages = switch(v)?;
        Ok(())
    }),
    Key::server("development", "on|off|auto", &["auto"], "show users the causes of errors; auto: the program decides (default: on in debug builds)", |c, v| {
        c.development = if v == "auto" { None } else { Some(switch(v)?) };
        Ok(())
    }),
    Key::server("access-log", "FILE|off", &["off"], "log each request to this file", |c, v| {
        c.logs.access = (v != "off").then(|| v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::server(
        "access-log-format",
        "FORMAT",
        &["combined"],
        "common, combined, json, or a line with %h %l %u %t %r %s %b and other fields",
        |c, v| {
            bine_log::Format::parse(v)?;
            v.clone_into(&mut c.logs.format);
            Ok(())
        },
    ),
    Key::server(
        "access-log-when-full",
        "drop|wait",
        &["drop"],
        "when the log is too slow: drop lines, or let requests wait",
        |c, v| {
            c.logs.when_full = word(v, &["drop", "wait"])?;
            Ok(())
        },
    ),
    Key::server("error-log", "FILE|stderr", &["stderr"], "destination of the server's own log", |c, v| {
        c.logs.error = (v != "stderr").then(|| v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::server("error-log-level", "LEVEL", &["notice"], "lowest level that is logged: error, warning, notice, debug", |c, v| {
        c.logs.level = word(v, &["error", "warning", "notice", "debug"])?;
        Ok(())
    }),
    Key::server("health", "on|off", &["on"], "answer /health and /ready where the program has no page of that path", |c, v| {
        c.health.is_told = switch(v)?;
        Ok(())
    }),
    Key::server("health-log", "on|off", &["off"], "log health checks in the access log", |c, v| {
        c.health.is_logged = switch(v)?;
        Ok(())
    }),
    Key::server(
        "control",
        "PATH|auto|off",
        &["auto"],
        "socket for `bine reload`; auto: bine.control in the run folder, if that exists",
        |c, v| {
            c.control = match v {
                "auto" => Control::Usual,
                "off" => Control::Off,
                path => Control::At(path.into()),
            };
            Ok(())
        },
    )
    .kind(Kind::Path)
    .fixed(),
    Key::server("data", "DIR|memory", &[], "folder for tables, sessions, TLS keys and certificates; memory: keep nothing on disk", |c, v| {
        c.in_memory = v == "memory";
        c.data = (!c.in_memory).then(|| v.into());
        Ok(())
    })
    .kind(Kind::Path)
    .fixed(),
    Key::server(
        "sync",
        "commit|interval|TIME|none",
        &["commit"],
        "when a write to tables is acknowledged: commit: after it is on the disk; none: after it is written to the file; TIME: like none, and it is on the disk within TIME; interval: 100ms",
        |c, v| {
            c.sync = sync(v)?;
            Ok(())
        },
    )
    .fixed(),
    Key::server("user", "NAME|UID:GID", &[], "change to this user after the addresses are open", |c, v| {
        c.user = Some(User::find(v).map_err(|error| error.to_string())?);
        Ok(())
    })
    .fixed(),
    Key::server("connections", "N|auto", &["auto"], "concurrent connections; auto: as many as file descriptors allow", |c, v| {
        c.settings.connections = if v == "auto" { None } else { Some(number(v, 1)?) };
        Ok(())
    }),
    Key::server("connections-per-address", "N", &["256"], "concurrent connections from one IPv4 address or IPv6 /64; four times that from an IPv6 /48", |c, v| {
        c.settings.connections_per_address = number(v, 1)?;
        Ok(())
    }),
    Key::server("connections-local", "N|auto", &["auto"], "concurrent connections from this machine; auto: all but a reserve of a tenth, at most 1024, for other clients", |c, v| {
        c.settings.connections_local = if v == "auto" { None } else { Some(number(v, 1)?) };
        Ok(())
    }),
    Key::server("queue", "N", &["1024"], "requests that may wait for a worker", |c, v| {
        c.settings.queue = number(v, 0)?;
        Ok(())
    }).fixed(),
    Key::server("admission", "on|off", &["on"], "under overload, admit sessions that have begun before new ones; off: accept no new connections under overload", |c, v| {
        c.settings.admission.is_on = switch(v)?;
        Ok(())
    }),
    Key::server("admission-least", "N", &["8"], "sessions that are always admitted, whatever the load", |c, v| {
        c.settings.admission.least = sessions(v)?;
        Ok(())
    }),
    Key::server("admission-most", "N|auto", &["auto"], "concurrent sessions; auto: as many as the server can serve", |c, v| {
        c.settings.admission.most = if v == "auto" { admission::MOST } else { sessions(v)? };
        Ok(())
    }),
    Key::server("admission-wait", "TIME", &["10ms"], "wait for a worker or a loop that counts as overload", |c, v| {
        set_time(&mut c.settings.admission.wait, v)
    }),
    Key::server("admission-idle", "TIME", &["5m"], "idle time after which an admitted client counts as new", |c, v| {
        set_time(&mut c.settings.admission.idle, v)
    }),
    Key::server("admission-retry", "SECONDS-SECONDS", &["5-20"], "range of Retry-After for rejected clients; each gets a random value", |c, v| {
        c.settings.admission.retry = span(v)?;
        Ok(())
    }),
    Key::server("back-pressure", "on|off", &["on"], "with admission=off: accept no connections while requests wait too long for a worker", |c, v| {
        c.settings.guards.back_pressure = switch(v)?;
        Ok(())
    }),
    Key::server("guard-descriptors", "PERCENT|off", &["90"], "file descriptors in use at which idle connections of unknown clients close; halfway from there to 100 %, all idle connections close and the server accepts no more", |c, v| {
        c.settings.guards.descriptors = percent(v)?;
        Ok(())
    }),
    Key::server("guard-memory", "PERCENT|off", &["85"], "memory in use at which new and unknown clients are rejected", |c, v| {
        c.settings.guards.memory_refuses = percent(v)?;
        Ok(())
    }),
    Key::server("guard-memory-accept", "PERCENT|off", &["95"], "memory in use at which the server accepts no connections", |c, v| {
        c.settings.guards.memory_pauses = percent(v)?;
        Ok(())
    }),
    Key::server("most-memory", "BYTES|auto", &["auto"], "memory limit for these percentages; auto: the memory that the control group or the system has for this server", |c, v| {
        c.settings.guards.memory = if v == "auto" { None } else { Some(bytes(v)?) };
        Ok(())
    }),
    Key::server("budget-bodies", "BYTES|auto", &["auto"], "request bodies in memory, over all connections; auto: an eighth of memory", |c, v| {
        c.settings.budgets.bodies = if v == "auto" { None } else { Some(bytes(v)?) };
        Ok(())
    }),
    Key::server("budget-uploads", "BYTES|auto", &["auto"], "request bodies on disk, over all connections; auto: a quarter of the free space", |c, v| {
        c.settings.budgets.uploads = if v == "auto" { None } else { Some(bytes(v)?) };
        Ok(())
    }),
    Key::server("budget-unsent", "BYTES|auto", &["auto"], "unsent responses in memory, over all connections; auto: an eighth of memory", |c, v| {
        c.settings.budgets.unsent = if v == "auto" { None } else { Some(bytes(v)?) };
        Ok(())
    }),
    Key::server("budget-share", "PERCENT|auto", &["auto"], "share of each budget for one IPv4 address or IPv6 /64; auto: 25", |c, v| {
        c.settings.budgets.share = if v == "auto" { None } else { percent(v)? };
        Ok(())
    }),
    Key::server("most-head", "BYTES", &["16k"], "longest request line and header fields together", |c, v| {
        c.settings.limits.head = bytes(v)?;
        Ok(())
    }),
    Key::server("most-fields", "N", &["100"], "most header fields of a request", |c, v| {
        c.settings.limits.fields = number(v, 1)?;
        Ok(())
    }),
    Key::server("most-target", "BYTES", &["8k"], "longest request target", |c, v| {
        c.settings.limits.target = bytes(v)?;
        Ok(())
    }),
    Key::server("most-body", "BYTES", &["1g"], "longest request body, whatever the handler accepts", |c, v| {
        c.settings.limits.body = bytes(v)?;
        Ok(())
    }),
    Key::server("first-byte-timeout", "TIME", &["10s"], "from connection to first byte", |c, v| {
        set_time(&mut c.settings.timeouts.first_byte, v)
    }),
    Key::server("handshake-timeout", "TIME", &["5s"], "from connection to the end of a TLS handshake", |c, v| {
        set_time(&mut c.settings.timeouts.handshake, v)
    }),
    Key::server("head-timeout", "TIME", &["10s"], "from the first to the last byte of a request head", |c, v| {
        set_time(&mut c.settings.timeouts.head, v)
    }),
    Key::server("body-timeout", "TIME", &["10s"], "longest pause within a request body", |c, v| {
        set_time(&mut c.settings.timeouts.body, v)
    }),
    Key::server("handler-timeout", "TIME", &["30s"], "for the response of a handler", |c, v| {
        set_time(&mut c.settings.timeouts.handler, v)
    }),
    Key::server("write-timeout", "TIME", &["30s"], "longest pause of a client that reads a response", |c, v| {
        set_time(&mut c.settings.timeouts.write, v)
    }),
    Key::server("least-rate", "BYTES", &["1k"], "slowest transfer of bodies and responses, per second", |c, v| {
        c.settings.timeouts.rate = bytes(v)?;
        Ok(())
    }),
    Key::server("idle-timeout", "TIME", &["75s"], "between two requests on a connection", |c, v| {
        set_time(&mut c.settings.timeouts.idle, v)
    }),
    Key::server("queue-timeout", "TIME", &["1s"], "for a request's wait for a worker", |c, v| {
        set_time(&mut c.settings.timeouts.queue, v)
    }),
    Key::server("linger-timeout", "TIME", &["2s"], "for a rejected client to read the response", |c, v| {
        set_time(&mut c.settings.timeouts.linger, v)
    }),
    Key::server("leave-time", "TIME|off", &[], "when the server is told to stop, serve on for this time and answer 503 at /ready, so that load balancers stop sending first; default: 5s in a cluster, otherwise off", |c, v| {
        let mut leave = None;
        set_time_or_off(&mut leave, v)?;
        c.settings.timeouts.leave = Some(leave.unwrap_or_default());
        Ok(())
    }),
    Key::server("drain-timeout", "TIME", &["30s"], "for running requests when the server stops", |c, v| {
        set_time(&mut c.settings.timeouts.drain, v)
    }),
    Key::server("watchdog-report", "TIME|off", &["10s"], "log an event loop that has not turned for this time, with the stack of its thread", |c, v| {
        set_time_or_off(&mut c.settings.watchdog.report, v)
    }),
    Key::server("watchdog-replace", "TIME|off", &["30s"], "with --supervise, replace a process with a loop that has not turned for this time", |c, v| {
        set_time_or_off(&mut c.settings.watchdog.replace, v)
    }),
    Key::server("unsent", "BYTES", &["64m"], "unsent response bytes of one connection", |c, v| {
        c.settings.unsent = bytes(v)?;
        Ok(())
    }),
    Key::server("unread-body", "BYTES", &["64k"], "bytes of an unwanted body to read so that the connection can stay open", |c, v| {
        c.settings.unread_body = bytes(v)?;
        Ok(())
    }),
    Key::server("most-upload", "BYTES", &["100m"], "longest form with files, for a handler that may block", |c, v| {
        c.settings.upload = bytes(v)?;
        Ok(())
    }),
    Key::server("spool", "DIR|auto", &["auto"], "folder for such forms during their requests; auto: the system's folder for temporary files", |c, v| {
        if v != "auto" {
            c.settings.spool = v.into();
            if !c.settings.spool.is_dir() {
                return Err(format!("there is no folder {v}; make it, or leave the key out"));
            }
        }
        Ok(())
    })
    .kind(Kind::Path),
    Key::server("chunk-at", "BYTES", &["64k"], "length from which a page is sent in chunks while it is rendered", |c, v| {
        c.settings.chunk_at = bytes(v)?;
        Ok(())
    }),
];

pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().copied().find(|key| key.name == name)
}

pub(super) fn unknown(what: &str, name: &str) -> String {
    let hint =
        nearest_key(name).map_or(String::new(), |known| format!("; did you mean `{known}`?"));
    format!("unknown {what}{name}`{hint} (--help lists all)")
}

/// The error for an unknown key of a site; suggests only keys that a site may have.
pub(super) fn unknown_to_site(name: &str) -> String {
    let own = KEYS.iter().filter(|key| matches!(key.set, Set::Site(_))).map(|key| key.name);
    let near = nearest(own.chain(["hosts"]), name);
    let hint = near.map_or(String::new(), |known| format!("; did you mean `{known}`?"));
    format!("unknown setting of a site `{name}`{hint} (--help lists all)")
}

/// The key with the most similar name, if one is similar enough.
pub(super) fn nearest_key(name: &str) -> Option<&'static str> {
    nearest(KEYS.iter().map(|key| key.name).chain(["config", "site"]), name)
}
