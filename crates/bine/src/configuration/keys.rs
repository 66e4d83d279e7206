//! Decides what can be chosen: one table, read by the command line, by the environment, by the
//! configuration file and by `--help`.

use std::path::Path;

use bine_admission as admission;
use bine_server::{Settings, User, scheduler};

use super::values::{
    bytes, listen, number, percent, plain_listen, seconds, session_time, sessions, set_time,
    set_time_or_off, span, switch, sync, word,
};
use super::{Configuration, Control};
use crate::channels::{origin, rule};
use crate::live::RenderLimits;
use crate::nearest::nearest;
use crate::security::{Frames, Policy};
use crate::sites::{SiteChoices, exact_host, field_rule};

/// One thing that can be chosen.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What its value looks like.
    pub(super) value: &'static str,
    /// None: not chosen unless somebody does.
    pub(super) default: &'static [&'static str],
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    /// It cannot change while a server runs.
    pub(super) is_fixed: bool,
    pub(super) set: Set,
}

/// How a value stands in a file, and how the environment separates several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A text, or a number that may have a unit.
    Word,
    /// A path, which in a file begins at the file's folder.
    Path,
    /// On or off.
    Switch,
    /// Several words, in the environment with spaces between.
    Words,
    /// Several texts, in the environment one on a line.
    Lines,
}

/// Whose key it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Set {
    Server(fn(&mut Configuration, &str) -> Result<(), String>),
    Site(fn(&mut SiteChoices, &str) -> Result<(), String>),
}

/// Words that stand where a path would.
const NO_PATHS: [&str; 5] = ["off", "auto", "stderr", "stdout", "memory"];

impl Key {
    const fn server(
        name: &'static str,
        value: &'static str,
        default: &'static [&'static str],
        help: &'static str,
        set: fn(&mut Configuration, &str) -> Result<(), String>,
    ) -> Self {
        let set = Set::Server(set);
        Self { name, value, default, help, kind: Kind::Word, is_fixed: false, set }
    }

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

    const fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    const fn fixed(self) -> Self {
        Self { is_fixed: true, ..self }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.kind, Kind::Words | Kind::Lines)
    }

    /// The values in a variable of the environment.
    pub(super) fn split<'t>(&self, text: &'t str) -> Box<dyn Iterator<Item = &'t str> + 't> {
        match self.kind {
            Kind::Words => Box::new(text.split_whitespace()),
            Kind::Lines => Box::new(text.lines().filter(|line| !line.trim().is_empty())),
            Kind::Word | Kind::Path | Kind::Switch => Box::new(std::iter::once(text)),
        }
    }

    /// A path of a file in `folder`, as seen from where the program runs.
    pub(super) fn beneath(&self, folder: &Path, text: String) -> String {
        if self.kind != Kind::Path || text.is_empty() || NO_PATHS.contains(&&*text) {
            return text;
        }
        folder.join(&text).to_str().map_or(text, ToOwned::to_owned)
    }
}

/// Everything, in the order of `--help`.
pub(super) static KEYS: &[Key] = &[
    Key::server(
        "listen",
        "ADDRESS",
        &["127.0.0.1:8080"],
        "HOST:PORT or unix:PATH to listen on, repeatable; options follow it after commas: tls=on, backlog=4096, nodelay=on, send-buffer=BYTES",
        |c, v| {
            let (listen, says_tls) = listen(v)?;
            c.settings.listeners.push(listen);
            c.says_tls.push(says_tls);
            Ok(())
        },
    )
    .kind(Kind::Words),
    Key::server("scheduler", "NAME", &["hybrid"], "who runs what; `help` lists them", |c, v| {
        scheduler::check(v).map_err(|error| error.to_string())?;
        v.clone_into(&mut c.settings.scheduler);
        Ok(())
    })
    .fixed(),
    Key::server("loops", "N|auto", &["auto"], "event loops, a thread each; auto: one per core", |c, v| {
        c.settings.loops = if v == "auto" { Settings::default().loops } else { number(v, 1)? };
        Ok(())
    })
    .fixed(),
    Key::server(
        "workers",
        "N|auto",
        &["auto"],
        "threads that may block; auto: eight per core, at least 8, at most 64, and up to 256 while requests wait and the cores do not; 256 where each has a connection (pool, accept-many, queue)",
        |c, v| {
            // The scheduler stands above, so it is known.
            let usual = || Settings::usual_workers(&c.settings.scheduler);
            (c.settings.workers, c.settings.most_workers) = match v {
                "auto" => (usual(), Settings::default().most_workers),
                v => (number(v, 1)?, 0),
            };
            Ok(())
        },
    )
    .fixed(),
    Key::server("tls", "on|off|acme|self-signed", &["off"], "speak TLS at each address that says nothing of it; acme: with certificates from an authority, whose terms you agree to; self-signed: with one made here, for development", |c, v| {
        c.tls = word(v, &["on", "off", "acme", "self-signed"])?;
        Ok(())
    }),
    Key::site("certificate", "FILE", &[], "a site's certificate and those behind it, PEM", |s, v| {
        s.certificate = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::site("certificate-key", "FILE", &[], "its private key, PEM", |s, v| {
        s.certificate_key = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::server("acme-host", "HOST", &[], "with tls=acme, a name of this server that no site is for, repeatable; sites have theirs in `hosts`", |c, v| {
        c.acme.hosts.push(exact_host(v)?);
        Ok(())
    })
    .kind(Kind::Words),
    Key::server("acme-email", "ADDRESS", &[], "whom the authority may write to", |c, v| {
        if !v.contains('@') || v.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
            return Err("must be an address like me@example.org".to_owned());
        }
        c.acme.email = Some(v.to_owned());
        Ok(())
    }),
    Key::server("acme-directory", "URL", &["https://acme-v02.api.letsencrypt.org/directory"], "the authority that gives certificates (RFC 8555)", |c, v| {
        if !v.starts_with("https://") {
            return Err("must begin with https://".to_owned());
        }
        v.clone_into(&mut c.acme.directory);
        Ok(())
    }),
    Key::server("acme-roots", "FILE|auto", &["auto"], "certificates by which to trust the authority itself, PEM; auto: those of the system", |c, v| {
        c.acme.roots = (v != "auto").then(|| v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::server("https-redirect", "on|off|auto", &["auto"], "send who comes without TLS to the first address with it; auto: with a public certificate, except clients on this machine", |c, v| {
        c.redirects_to_https = if v == "auto" { None } else { Some(switch(v)?) };
        Ok(())
    }),
    Key::server("hsts", "TIME|off|auto", &["auto"], "for how long a browser shall come by TLS alone, like 365d; auto: 180d with a public certificate", |c, v| {
        c.hsts = if v == "auto" { None } else { Some(seconds(v)?) };
        Ok(())
    }),
    Key::server("hosts", "HOST|any|auto", &["auto"], "hosts to answer for, repeatable: example.org, *.example.org; auto: those of the certificates, on loopback alone only names of this machine, else any", |c, v| c.hosts.add(v))
    .kind(Kind::Words),
    Key::server("nosniff", "on|off|auto", &["auto"], "X-Content-Type-Options: nosniff with each response; auto: as the program says, which is on unless it says otherwise", |c, v| {
        c.headers.nosniff = if v == "auto" { None } else { Some(switch(v)?) };
        Ok(())
    }),
    Key::server("frames", "same-origin|deny|any|auto", &["auto"], "which pages may embed responses in frames (X-Frame-Options); auto: as the program says, same-origin unless it says otherwise", |c, v| {
        c.headers.frames = Frames::read(v)?;
        Ok(())
    }),
    Key::server("content-security-policy", "strict|off|POLICY|auto", &["auto"], "of pages made by html!; auto: as the program says, strict unless it says otherwise", |c, v| {
        c.headers.policy = Policy::read(v)?;
        Ok(())
    })
    .fixed(),
    Key::server("handshakes", "N", &["512"], "of TLS that are under way at one time, for each loop; one IPv4 address or IPv6 /64 has an eighth of all", |c, v| {
        c.settings.handshakes = number(v, 1)?;
        Ok(())
    }),
    Key::server("handshake-rate", "N|off", &["50"], "of TLS that one IPv4 address or IPv6 /64 begins in a second, after five seconds' worth at once; four times that an IPv6 /48", |c, v| {
        c.settings.handshake_rate = if v == "off" { 0 } else { number(v, 1)? };
        Ok(())
    }),
    Key::site("root", "DIR", &[], "serve the files below this folder", |s, v| {
        s.root = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::site("index", "NAME", &["index.html"], "the file that stands for its folder, repeatable", |s, v| {
        if v.is_empty() || v.contains('/') {
            return Err("must be the name of a file, without a folder".to_owned());
        }
        s.index.push(v.to_owned());
        Ok(())
    })
    .kind(Kind::Words),
    Key::site("listing", "on|off", &["off"], "a folder without an index shows what is in it", |s, v| {
        s.listing = switch(v)?;
        Ok(())
    }),
    Key::site("precompressed", "on|off", &["on"], "send FILE.br, FILE.zst or FILE.gz in place of FILE to peers that take it", |s, v| {
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
        "a field of replies with a file, repeatable: '*.css Cache-Control: max-age=3600'",
        |s, v| {
            s.fields.push(field_rule(v)?);
            Ok(())
        },
    )
    .kind(Kind::Lines),
    Key::site("pages", "on|off", &["on"], "the program's pages besides the files", |s, v| {
        s.pages = switch(v)?;
        Ok(())
    }),
    Key::server("development", "on|off|auto", &["auto"], "show users the causes of errors; auto: as the program says, which in a debug build is on", |c, v| {
        c.development = if v == "auto" { None } else { Some(switch(v)?) };
        Ok(())
    }),
    Key::server("access-log", "FILE|off", &["off"], "log each request", |c, v| {
        c.logs.access = (v != "off").then(|| v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::server(
        "access-log-format",
        "FORMAT",
        &["combined"],
        "common, combined, json, or a line with %h %l %u %t %r %s %b and others",
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
        "what happens to lines that come faster than they can be written",
        |c, v| {
            c.logs.when_full = word(v, &["drop", "wait"])?;
            Ok(())
        },
    ),
    Key::server("error-log", "FILE|stderr", &["stderr"], "where the server tells of itself", |c, v| {
        c.logs.error = (v != "stderr").then(|| v.into());
        Ok(())
    })
    .kind(Kind::Path),
    Key::server("error-log-level", "LEVEL", &["notice"], "the least it tells: error, warning, notice, debug", |c, v| {
        c.logs.level = word(v, &["error", "warning", "notice", "debug"])?;
        Ok(())
    }),
    Key::server("metrics", "ADDRESS|off", &["off"], "tell figures at /metrics of an address of their own, like 127.0.0.1:9100 or unix:PATH: whoever reaches it may read them", |c, v| {
        c.metrics = if v == "off" { None } else { Some(plain_listen(v)?) };
        Ok(())
    })
    .fixed(),
    Key::server("health", "on|off", &["on"], "answer /health and /ready where the program has no page of that path", |c, v| {
        c.health.is_told = switch(v)?;
        Ok(())
    }),
    Key::server("health-log", "on|off", &["off"], "such requests have lines in the access log", |c, v| {
        c.health.is_logged = switch(v)?;
        Ok(())
    }),
    Key::server(
        "control",
        "PATH|auto|off",
        &["auto"],
        "the socket of `bine reload`; auto: bine.control in the run folder, if there is one",
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
    Key::server("data", "DIR|memory", &[], "the folder for what is kept: tables, keys of TLS tickets, certificates; memory: nothing is", |c, v| {
        c.forgets = v == "memory";
        c.data = (!c.forgets).then(|| v.into());
        Ok(())
    })
    .kind(Kind::Path)
    .fixed(),
    Key::server(
        "sync",
        "commit|interval|TIME|none",
        &["commit"],
        "when a change of tables is acknowledged: commit: once it outlives the machine; none: once it is written; TIME: the same, and within TIME it outlives the machine; interval: 100ms",
        |c, v| {
            c.sync = sync(v)?;
            Ok(())
        },
    )
    .fixed(),
    Key::server(
        "live-threads",
        "N|auto",
        &["auto"],
        "threads that render live pages; auto: one per core, at least 2; the first renders changes only, not pages for those who come",
        |c, v| {
            c.live.threads = match v {
                "auto" => RenderLimits::default().threads,
                v => number(v, 1)?,
            };
            Ok(())
        },
    )
    .fixed(),
    Key::server(
        "live-joins",
        "N",
        &["4096"],
        "browsers for which a live page waits to be rendered; one address (IPv6: /64) may have a quarter of them, the server's own machine three quarters; more are told to come again (503)",
        |c, v| {
            c.live.joins = number(v, 4)?;
            Ok(())
        },
    )
    .fixed(),
    Key::server("session-idle", "TIME", &[], "a visitor's session ends when it was not used for so long, like 14d (which is usual)", |c, v| {
        c.session_idle = Some(session_time(v)?);
        Ok(())
    })
    .fixed(),
    Key::server("session-absolute", "TIME", &[], "a visitor's session ends so long after its beginning or login, like 90d (which is usual)", |c, v| {
        c.session_absolute = Some(session_time(v)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-follow", "RULE", &[], "everybody may follow these channels, repeatable: a name, `news/*`, `chat/{room}`", |c, v| {
        c.channels.follow.push(rule(v)?);
        Ok(())
    })
    .kind(Kind::Words)
    .fixed(),
    Key::server("channels-publish", "RULE", &[], "everybody may publish in these", |c, v| {
        c.channels.publish.push(rule(v)?);
        Ok(())
    })
    .kind(Kind::Words)
    .fixed(),
    Key::server("channels-manage", "RULE", &[], "everybody may make, renew, close and remove these", |c, v| {
        c.channels.manage.push(rule(v)?);
        Ok(())
    })
    .kind(Kind::Words)
    .fixed(),
    Key::server("channels-key", "FILE", &[], "who shows a token that was signed with this may do what it says: a secret of at least 32 bytes, a public key (PEM) or a set of keys (JWKS)", |c, v| {
        c.channels.key = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path)
    .fixed(),
    Key::server("channels-issuer", "NAME", &[], "only tokens whose `iss` says this", |c, v| {
        c.channels.issuer = Some(v.to_owned());
        Ok(())
    })
    .fixed(),
    Key::server("channels-audience", "NAME", &[], "only tokens whose `aud` says this", |c, v| {
        c.channels.audience = Some(v.to_owned());
        Ok(())
    })
    .fixed(),
    Key::server("channels-origin", "ORIGIN", &[], "pages of this other site may reach channels too, repeatable: https://example.org", |c, v| {
        c.channels.origins.push(origin(v)?.to_string());
        Ok(())
    })
    .kind(Kind::Words)
    .fixed(),
    Key::server("channels-holds", "N", &[], "polls, streams and WebSockets that may wait at one time; a million unless said", |c, v| {
        c.channels.holds = Some(number(v, 1)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-holds-per-address", "N", &[], "from one peer that is not this machine; 256 unless said", |c, v| {
        c.channels.holds_per_address = Some(number(v, 1)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-holds-per-subject", "N", &[], "of one name, which a token or the program says; 256 unless said", |c, v| {
        c.channels.holds_per_subject = Some(number(v, 1)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-messages-per-address", "N", &[], "published in a second from one peer that is not this machine; 100 unless said", |c, v| {
        c.channels.messages_per_address = Some(number(v, 1)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-bytes", "BYTES", &[], "memory that all channels take; a quarter of the machine's, the control group's or most-memory unless said", |c, v| {
        c.channels.bytes = Some(bytes(v)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-bytes-per-channel", "BYTES", &[], "of the messages of one channel; a quarter of channels-bytes unless said", |c, v| {
        c.channels.bytes_per_channel = Some(bytes(v)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-bytes-per-subject", "BYTES", &[], "that one name, or one address without a name, has published; a quarter of channels-bytes unless said", |c, v| {
        c.channels.bytes_per_subject = Some(bytes(v)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-messages-per-subject", "N", &[], "published in a second by one name; 1000 unless said", |c, v| {
        c.channels.messages_per_subject = Some(number(v, 1)?);
        Ok(())
    })
    .fixed(),
    Key::server("user", "NAME|UID:GID", &[], "become this user once the addresses are open", |c, v| {
        c.user = Some(User::find(v).map_err(|error| error.to_string())?);
        Ok(())
    })
    .fixed(),
    Key::server("connections", "N|auto", &["auto"], "at one time; auto: as many as descriptors allow", |c, v| {
        c.settings.connections = if v == "auto" { None } else { Some(number(v, 1)?) };
        Ok(())
    }),
    Key::server("connections-per-address", "N", &["256"], "from one IPv4 address or IPv6 /64; four times that from an IPv6 /48", |c, v| {
        c.settings.connections_per_address = number(v, 1)?;
        Ok(())
    }),
    Key::server("connections-local", "N|auto", &["auto"], "from this machine; auto: all but a tenth, of which no more than 1024 are kept for others", |c, v| {
        c.settings.connections_local = if v == "auto" { None } else { Some(number(v, 1)?) };
        Ok(())
    }),
    Key::server("queue", "N", &["1024"], "requests that may wait for a worker", |c, v| {
        c.settings.queue = number(v, 0)?;
        Ok(())
    }).fixed(),
    Key::server("admission", "on|off", &["on"], "when more come than can be served, sessions that have begun come first; off: no new connection is accepted meanwhile", |c, v| {
        c.settings.admission.is_on = switch(v)?;
        Ok(())
    }),
    Key::server("admission-least", "N", &["8"], "sessions that are let in however slow everything is", |c, v| {
        c.settings.admission.least = sessions(v)?;
        Ok(())
    }),
    Key::server("admission-most", "N|auto", &["auto"], "sessions at one time; auto: as many as can be served", |c, v| {
        c.settings.admission.most = if v == "auto" { admission::MOST } else { sessions(v)? };
        Ok(())
    }),
    Key::server("admission-wait", "TIME", &["10ms"], "for a worker or a loop that nobody is spared is a queue", |c, v| {
        set_time(&mut c.settings.admission.wait, v)
    }),
    Key::server("admission-idle", "TIME", &["5m"], "after which who was let in is a newcomer again", |c, v| {
        set_time(&mut c.settings.admission.idle, v)
    }),
    Key::server("admission-retry", "SECONDS-SECONDS", &["5-20"], "after which who was not let in is told to come again, each after another number of them", |c, v| {
        c.settings.admission.retry = span(v)?;
        Ok(())
    }),
    Key::server("back-pressure", "on|off", &["on"], "with admission=off: no connection is accepted while requests wait too long for a worker", |c, v| {
        c.settings.guards.back_pressure = switch(v)?;
        Ok(())
    }),
    Key::server("guard-descriptors", "PERCENT|off", &["90"], "of them in use: idle connections of strangers close; half-way from there to all every idle one, and none is accepted", |c, v| {
        c.settings.guards.descriptors = percent(v)?;
        Ok(())
    }),
    Key::server("guard-memory", "PERCENT|off", &["85"], "of it in use: newcomers and strangers are refused", |c, v| {
        c.settings.guards.memory_refuses = percent(v)?;
        Ok(())
    }),
    Key::server("guard-memory-accept", "PERCENT|off", &["95"], "of it in use: no connection is accepted", |c, v| {
        c.settings.guards.memory_pauses = percent(v)?;
        Ok(())
    }),
    Key::server("most-memory", "BYTES|auto", &["auto"], "by which that is measured; auto: what the control group or the system has left for this server", |c, v| {
        c.settings.guards.memory = if v == "auto" { None } else { Some(bytes(v)?) };
        Ok(())
    }),
    Key::server("budget-bodies", "BYTES|auto", &["auto"], "of request bodies in memory, of all connections together; auto: an eighth of memory", |c, v| {
        c.settings.budgets.bodies = if v == "auto" { None } else { Some(bytes(v)?) };
        Ok(())
    }),
    Key::server("budget-uploads", "BYTES|auto", &["auto"], "of request bodies on disk, of all connections together; auto: a quarter of what is free there", |c, v| {
        c.settings.budgets.uploads = if v == "auto" { None } else { Some(bytes(v)?) };
        Ok(())
    }),
    Key::server("budget-unsent", "BYTES|auto", &["auto"], "of replies in memory that their clients have not read, of all connections together; auto: an eighth of memory", |c, v| {
        c.settings.budgets.unsent = if v == "auto" { None } else { Some(bytes(v)?) };
        Ok(())
    }),
    Key::server("budget-share", "PERCENT|auto", &["auto"], "of each budget that one IPv4 address or IPv6 /64 may hold; auto: 25", |c, v| {
        c.settings.budgets.share = if v == "auto" { None } else { percent(v)? };
        Ok(())
    }),
    Key::server("most-head", "BYTES", &["16k"], "of request line and fields", |c, v| {
        c.settings.limits.head = bytes(v)?;
        Ok(())
    }),
    Key::server("most-fields", "N", &["100"], "fields of a request", |c, v| {
        c.settings.limits.fields = number(v, 1)?;
        Ok(())
    }),
    Key::server("most-target", "BYTES", &["8k"], "of an address", |c, v| {
        c.settings.limits.target = bytes(v)?;
        Ok(())
    }),
    Key::server("most-body", "BYTES", &["1g"], "of any body, whatever its handler takes", |c, v| {
        c.settings.limits.body = bytes(v)?;
        Ok(())
    }),
    Key::server("first-byte-timeout", "TIME", &["10s"], "from connection to first byte", |c, v| {
        set_time(&mut c.settings.timeouts.first_byte, v)
    }),
    Key::server("handshake-timeout", "TIME", &["5s"], "from connection to the end of a TLS handshake", |c, v| {
        set_time(&mut c.settings.timeouts.handshake, v)
    }),
    Key::server("head-timeout", "TIME", &["10s"], "from a head's first byte to its last", |c, v| {
        set_time(&mut c.settings.timeouts.head, v)
    }),
    Key::server("body-timeout", "TIME", &["10s"], "for a pause in a body", |c, v| {
        set_time(&mut c.settings.timeouts.body, v)
    }),
    Key::server("handler-timeout", "TIME", &["30s"], "for the answer of a handler", |c, v| {
        set_time(&mut c.settings.timeouts.handler, v)
    }),
    Key::server("write-timeout", "TIME", &["30s"], "for a pause of a peer that reads", |c, v| {
        set_time(&mut c.settings.timeouts.write, v)
    }),
    Key::server("least-rate", "BYTES", &["1k"], "a second, of slow bodies and slow readers", |c, v| {
        c.settings.timeouts.rate = bytes(v)?;
        Ok(())
    }),
    Key::server("idle-timeout", "TIME", &["75s"], "between two requests of a connection", |c, v| {
        set_time(&mut c.settings.timeouts.idle, v)
    }),
    Key::server("queue-timeout", "TIME", &["1s"], "for a request's wait for a worker", |c, v| {
        set_time(&mut c.settings.timeouts.queue, v)
    }),
    Key::server("linger-timeout", "TIME", &["2s"], "for a refused peer to read why", |c, v| {
        set_time(&mut c.settings.timeouts.linger, v)
    }),
    Key::server("drain-timeout", "TIME", &["30s"], "for what runs when the server stops", |c, v| {
        set_time(&mut c.settings.timeouts.drain, v)
    }),
    Key::server("watchdog-report", "TIME|off", &["10s"], "log an event loop that has not turned for so long, with the stack of its thread", |c, v| {
        set_time_or_off(&mut c.settings.watchdog.report, v)
    }),
    Key::server("watchdog-replace", "TIME|off", &["30s"], "with --supervise, replace a process with a loop that has not turned for so long", |c, v| {
        set_time_or_off(&mut c.settings.watchdog.replace, v)
    }),
    Key::server("unsent", "BYTES", &["64m"], "of replies that a connection may have unsent", |c, v| {
        c.settings.unsent = bytes(v)?;
        Ok(())
    }),
    Key::server("unread-body", "BYTES", &["64k"], "of a body nobody wants, read to stay connected", |c, v| {
        c.settings.unread_body = bytes(v)?;
        Ok(())
    }),
    Key::server("most-upload", "BYTES", &["100m"], "of a form with files for a page that may block", |c, v| {
        c.settings.upload = bytes(v)?;
        Ok(())
    }),
    Key::server("spool", "DIR|auto", &["auto"], "keeps such forms while they are used; auto: the system's folder for that", |c, v| {
        if v != "auto" {
            c.settings.spool = v.into();
            if !c.settings.spool.is_dir() {
                return Err(format!("there is no folder {v}; make it, or leave the key out"));
            }
        }
        Ok(())
    })
    .kind(Kind::Path),
    Key::server("chunk-at", "BYTES", &["64k"], "of a page; a longer one leaves while it is written", |c, v| {
        c.settings.chunk_at = bytes(v)?;
        Ok(())
    }),
];

pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

pub(super) fn unknown(what: &str, name: &str) -> String {
    let hint =
        nearest_key(name).map_or(String::new(), |known| format!("; did you mean `{known}`?"));
    format!("unknown {what}{name}`{hint} (--help lists all)")
}

/// The same where only the keys of a site may stand.
pub(super) fn unknown_to_site(name: &str) -> String {
    let own = KEYS.iter().filter(|key| matches!(key.set, Set::Site(_))).map(|key| key.name);
    let near = nearest(own.chain(["hosts"]), name);
    let hint = near.map_or(String::new(), |known| format!("; did you mean `{known}`?"));
    format!("unknown setting of a site `{name}`{hint} (--help lists all)")
}

/// The key that was perhaps meant.
pub(super) fn nearest_key(name: &str) -> Option<&'static str> {
    nearest(KEYS.iter().map(|key| key.name).chain(["config", "site"]), name)
}
