//! One rule of the proxy: which requests go to which origins, and under which limits.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bine_client::PoolLimits;
use bine_server::ProxyFields;

use super::balancer::{BalancePolicy, LeastOutstanding, RoundRobin, TwoChoices};
use super::origin::OriginLimits;
use super::origin_settings::OriginSettings;
use super::origin_tls::{LoadedTls, TlsFiles};
use super::place_book::PlaceLimits;
use crate::configuration::values::{number, set_time, set_time_or_off, switch, word};
use crate::sites::HostPattern;

/// A reverse proxy: the origins that answer the requests for a path, and how.
///
/// The configuration has the same settings as keys of a table `[[proxy]]`. A faulty value is reported
/// at the start of the program.
#[derive(Clone, Debug)]
pub struct Proxy {
    pub(super) rule: ProxyRule,
    /// The first fault of a setting.
    pub(super) fault: Option<String>,
}

/// The settings of a rule.
#[derive(Clone, Debug)]
pub(super) struct ProxyRule {
    /// `/`, or a path without a slash at its end.
    pub(super) path: String,
    /// The hosts that it applies to; empty: all.
    pub(super) hosts: Vec<HostPattern>,
    pub(super) origins: Vec<OriginSettings>,
    /// The weight of each origin without one of its own; missing ones are 1.
    weights: Vec<u32>,
    pub(super) strips_prefix: bool,
    pub(super) host: HostField,
    pub(super) fields: ProxyFields,
    /// Whether the security headers of this server replace those of an origin without a switch of its
    /// own.
    has_security: bool,
    /// The limit for the head of the response, from the end of the request.
    pub(super) first_byte: Duration,
    /// The limit for each further wait for the origin.
    pub(super) silence: Duration,
    /// The limit for an upgraded connection without traffic.
    pub(super) upgrade_silence: Duration,
    tls_files: TlsFiles,
    /// Their content; `None`: no origin has TLS.
    pub(super) tls: Option<LoadedTls>,
    pool: PoolLimits,
    /// The requests of one origin that run.
    connections: usize,
    /// Those of one client; `None`: a quarter.
    connections_per_client: Option<usize>,
    /// The requests that wait for one origin.
    waiting: usize,
    pub(super) balance: Balance,
    pub(super) sticky: Sticky,
    /// The path of active health checks.
    pub(super) check: Option<String>,
    pub(super) check_interval: Duration,
    /// Consecutive failures after which an origin rests.
    pub(super) failures: u32,
    /// How long it rests.
    pub(super) failure_time: Duration,
    /// The time in which an origin that is up again reaches its full weight.
    pub(super) slow_start: Duration,
}

/// The `Host` field of requests to the origin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum HostField {
    /// That of the client.
    Keep,
    /// That of the origin.
    Origin,
    Fixed(String),
}

/// Which clients stay with an origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sticky {
    Off,
    /// Those that return a cookie.
    Cookie,
    /// Those of one address.
    Address,
}

/// The policy of the balancer.
#[derive(Clone)]
pub(super) struct Balance {
    /// Its name in the configuration; `None`: a policy of the program.
    name: Option<&'static str>,
    pub(super) policy: Arc<dyn BalancePolicy>,
}

impl Balance {
    /// A policy of the program.
    fn own(policy: impl BalancePolicy) -> Self {
        Self { name: None, policy: Arc::new(policy) }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (name, policy): (_, Arc<dyn BalancePolicy>) = match text {
            "round-robin" => ("round-robin", Arc::<RoundRobin>::default()),
            "least-outstanding" => ("least-outstanding", Arc::<LeastOutstanding>::default()),
            "two-choices" => ("two-choices", Arc::<TwoChoices>::default()),
            _ => return Err("must be round-robin, least-outstanding or two-choices".to_owned()),
        };
        Ok(Self { name: Some(name), policy })
    }
}

impl fmt::Debug for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.unwrap_or("a policy of the program"))
    }
}

/// The keys of a rule, for messages.
const KEYS: &str = "path, to, weights, hosts, strip-prefix, host, fields, security, origin-authority, origin-certificate, origin-certificate-key, connect-time, first-byte-time, silence-time, upgrade-time, connections, connections-per-client, waiting, kept, kept-time, balance, sticky, check, check-interval, failures, failure-time, slow-start";

impl ProxyRule {
    fn new() -> Self {
        Self {
            path: "/".to_owned(),
            hosts: Vec::new(),
            origins: Vec::new(),
            weights: Vec::new(),
            strips_prefix: false,
            host: HostField::Keep,
            fields: ProxyFields::XForwarded,
            has_security: true,
            first_byte: Duration::from_secs(25),
            silence: Duration::from_secs(25),
            upgrade_silence: Duration::from_mins(10),
            tls_files: TlsFiles::default(),
            tls: None,
            pool: PoolLimits {
                idle: 32,
                idle_time: Duration::from_secs(15),
                connect_time: Duration::from_secs(5),
            },
            connections: 256,
            connections_per_client: None,
            waiting: 1024,
            balance: Balance::own(RoundRobin::default()),
            sticky: Sticky::Off,
            check: None,
            check_interval: Duration::from_secs(5),
            failures: 3,
            failure_time: Duration::from_secs(10),
            slow_start: Duration::ZERO,
        }
    }

    /// Parses `path=/ to=http://127.0.0.1:9000 ...`.
    ///
    /// # Errors
    ///
    /// A message that names what is invalid and the correction.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rule = Self::new();
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=').ok_or_else(|| {
                format!("`{word}` must be a key and a value, as in path=/ to=http://127.0.0.1:9000")
            })?;
            rule.set(name, value)?;
        }
        rule.complete()?;
        Ok(rule)
    }

    /// Sets one value. Members of a list are separated by commas.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = |reason: String| format!("{name}: {reason}");
        let parsed = match name {
            "path" => set_path(&mut self.path, value),
            "to" => value.split(',').try_for_each(|text| {
                self.origins.push(text.parse()?);
                Ok(())
            }),
            "weights" => value.split(',').try_for_each(|text| {
                self.weights.push(number(text, 1)?);
                Ok(())
            }),
            "hosts" => value.split(',').try_for_each(|text| {
                self.hosts.push(HostPattern::parse(text)?);
                Ok(())
            }),
            "strip-prefix" => switch(value).map(|is_on| self.strips_prefix = is_on),
            "host" => host_field(value).map(|host| self.host = host),
            "fields" => {
                value.parse().map(|fields| self.fields = fields).map_err(|error| format!("{error}"))
            }
            "security" => switch(value).map(|is_on| self.has_security = is_on),
            "origin-authority" => set_file(&mut self.tls_files.authority, value),
            "origin-certificate" => set_file(&mut self.tls_files.certificate, value),
            "origin-certificate-key" => set_file(&mut self.tls_files.key, value),
            "connect-time" => set_time(&mut self.pool.connect_time, value),
            "first-byte-time" => set_time(&mut self.first_byte, value),
            "silence-time" => set_time(&mut self.silence, value),
            "upgrade-time" => set_time(&mut self.upgrade_silence, value),
            "connections" => number(value, 1).map(|count| self.connections = count),
            "connections-per-client" => {
                number(value, 1).map(|count| self.connections_per_client = Some(count))
            }
            "waiting" => number(value, 0).map(|count| self.waiting = count),
            "kept" => number(value, 0).map(|count| self.pool.idle = count),
            "kept-time" => set_time(&mut self.pool.idle_time, value),
            "balance" => Balance::parse(value).map(|balance| self.balance = balance),
            "sticky" => word(value, &["off", "cookie", "address"]).map(|kind| {
                self.sticky = match &*kind {
                    "cookie" => Sticky::Cookie,
                    "address" => Sticky::Address,
                    _ => Sticky::Off,
                };
            }),
            "check" if value == "off" => {
                self.check = None;
                Ok(())
            }
            "check" if is_target(value) => {
                self.check = Some(value.to_owned());
                Ok(())
            }
            "check" => Err("must be a path like /health, or off".to_owned()),
            "check-interval" => set_time(&mut self.check_interval, value),
            "failures" => number(value, 1).map(|count| self.failures = count),
            "failure-time" => set_time(&mut self.failure_time, value),
            "slow-start" => {
                let mut time = None;
                set_time_or_off(&mut time, value)
                    .map(|()| self.slow_start = time.unwrap_or_default())
            }
            _ => return Err(format!("unknown key `{name}`; the keys are {KEYS}")),
        };
        parsed.map_err(wrong)
    }

    /// Checks the settings together, and reads the certificates.
    fn complete(&mut self) -> Result<(), String> {
        if self.origins.is_empty() {
            return Err("a proxy needs an origin, as in to=http://127.0.0.1:9000".to_owned());
        }
        if self.weights.len() > self.origins.len() {
            return Err("weights: there are more weights than origins".to_owned());
        }
        if self.connections_per_client.is_some_and(|count| count > self.connections) {
            let most = self.connections;
            return Err(format!(
                "connections-per-client: must be {most} or less, the value of `connections`"
            ));
        }
        if !self.weights.is_empty() && self.origins.iter().any(|one| one.weight.is_some()) {
            return Err("weights: name the weights either here or in `to`".to_owned());
        }
        for (place, OriginSettings { address, .. }) in self.origins.iter().enumerate() {
            if self.origins[..place].iter().any(|other| other.address == *address) {
                return Err(format!("to: {address} is named twice; give it a weight"));
            }
        }
        if self.origins.iter().any(|one| one.address.is_tls()) {
            self.tls = Some(self.tls_files.load()?);
        } else if let Some(key) = self.tls_files.first_key() {
            return Err(format!("{key}: no origin has TLS; write https:// in `to`"));
        }
        Ok(())
    }

    /// The limits of each origin.
    pub(super) fn limits(&self) -> OriginLimits {
        let total = self.connections;
        let client = self.connections_per_client.unwrap_or_else(|| total.div_ceil(4));
        let places = PlaceLimits { total, client, waiting: self.waiting };
        OriginLimits { pool: self.pool, places }
    }

    /// The configured weight of an origin.
    pub(super) fn weight(&self, index: usize) -> u32 {
        let own = self.origins.get(index).and_then(|one| one.weight);
        own.or_else(|| self.weights.get(index).copied()).unwrap_or(1)
    }

    /// Whether the security headers of this server replace those of an origin.
    pub(super) fn has_security(&self, index: usize) -> bool {
        let own = self.origins.get(index).and_then(|one| one.has_security);
        own.unwrap_or(self.has_security)
    }

    /// Whether both would answer the same requests.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let same = |host: &HostPattern| other.hosts.contains(host);
        let is_for_all = self.hosts.is_empty() && other.hosts.is_empty();
        self.path == other.path && (is_for_all || self.hosts.iter().any(same))
    }
}

fn set_file(file: &mut Option<PathBuf>, value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Err("must be the path of a file".to_owned());
    }
    *file = Some(value.into());
    Ok(())
}

fn set_path(path: &mut String, value: &str) -> Result<(), String> {
    let is_plain = is_target(value) && !value.contains('%') && !value.contains("//");
    if !is_plain || value.split('/').any(|segment| segment == "." || segment == "..") {
        return Err("must be a path like / or /shop".to_owned());
    }
    let trimmed = value.trim_end_matches('/');
    *path = if trimmed.is_empty() { "/".to_owned() } else { trimmed.to_owned() };
    Ok(())
}

/// Whether it is a path that a request line may contain.
fn is_target(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'?');
    text.starts_with('/') && text.bytes().all(is_letter)
}

fn host_field(text: &str) -> Result<HostField, String> {
    match text {
        "keep" => Ok(HostField::Keep),
        "origin" => Ok(HostField::Origin),
        name => {
            let (host, port) = name.split_once(':').unwrap_or((name, "1"));
            let is_host = HostPattern::parse(host).is_ok_and(|host| host.exact().is_some());
            let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
            let wrong = "must be keep, origin, or a name like example.org";
            if is_host && is_port {
                Ok(HostField::Fixed(name.to_owned()))
            } else {
                Err(wrong.to_owned())
            }
        }
    }
}

impl Proxy {
    /// Sends requests to these origins, such as `http://127.0.0.1:9000` or `unix:/run/app.sock`.
    /// Options of an origin follow its address: `http://127.0.0.1:9000;weight=2;security=off`.
    pub fn to<'o>(origins: impl IntoIterator<Item = &'o str>) -> Self {
        let mut proxy = Self { rule: ProxyRule::new(), fault: None };
        for origin in origins {
            proxy = proxy.with("to", origin);
        }
        proxy
    }

    /// Sets a key of the configuration to a value in its form there, such as
    /// `with("first-byte-time", "10s")`. Members of a list are separated by commas.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        if let Err(fault) = self.rule.set(key, value) {
            self.fault.get_or_insert(fault);
        }
        self
    }

    /// Removes the path of the rule from the paths of requests, as `strip-prefix = true` does.
    #[must_use]
    pub fn strip_prefix(self) -> Self {
        self.with("strip-prefix", "on")
    }

    /// Balances by a policy of the program.
    #[must_use]
    pub fn balance(mut self, policy: impl BalancePolicy) -> Self {
        self.rule.balance = Balance::own(policy);
        self
    }

    /// The rule at this path.
    pub(super) fn at(mut self, path: &str) -> Result<ProxyRule, String> {
        let checked = match self.fault.take() {
            Some(fault) => Err(fault),
            None => set_path(&mut self.rule.path, path).and_then(|()| self.rule.complete()),
        };
        checked.map_err(|reason| format!("`.proxy({path:?}, ..)`: {reason}"))?;
        Ok(self.rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_rule() {
        let rule = ProxyRule::parse(
            "path=/shop/ to=http://127.0.0.1:9000,unix:/run/a weights=2,1 hosts=a.example strip-prefix=on host=b.example balance=two-choices sticky=cookie check=/health slow-start=30s failure-time=1s",
        )
        .unwrap();
        assert_eq!((&*rule.path, rule.origins.len(), &*rule.weights), ("/shop", 2, &[2, 1][..]));
        assert!(rule.strips_prefix && rule.sticky == Sticky::Cookie);
        assert_eq!(rule.host, HostField::Fixed("b.example".to_owned()));
        assert_eq!(format!("{:?}", rule.balance), "two-choices");
        assert_eq!(rule.slow_start, Duration::from_secs(30));
    }

    #[test]
    fn prefers_the_settings_of_an_origin_to_those_of_the_rule() {
        let rule =
            ProxyRule::parse("to=http://a;weight=3,http://b;security=on security=off").unwrap();
        assert_eq!((rule.weight(0), rule.weight(1)), (3, 1));
        assert!(!rule.has_security(0) && rule.has_security(1));
        let rule = ProxyRule::parse("to=http://a,http://b;security=off weights=2").unwrap();
        assert_eq!((rule.weight(0), rule.weight(1)), (2, 1));
        assert!(rule.has_security(0) && !rule.has_security(1));
    }

    #[test]
    fn names_the_correction_of_a_faulty_rule() {
        for (text, expected) in [
            ("path=/", "a proxy needs an origin, as in to=http://127.0.0.1:9000"),
            ("/ http://a", "`/` must be a key and a value, as in path=/ to=http://127.0.0.1:9000"),
            ("path=a to=http://a", "path: must be a path like / or /shop"),
            ("path=/a/../b to=http://a", "path: must be a path like / or /shop"),
            (
                "to=http://a origin-authority=ca.pem",
                "origin-authority: no origin has TLS; write https:// in `to`",
            ),
            (
                "to=https://a origin-authority=/absent",
                "origin-authority: cannot read /absent: No such file or directory (os error 2)",
            ),
            (
                "to=https://a origin-authority=/dev/null",
                "origin-authority: there is no certificate in PEM format",
            ),
            (
                "to=https://a origin-authority=/dev/null origin-certificate=/dev/null",
                "origin-certificate: name its key by `origin-certificate-key`",
            ),
            ("to=http://a,http://A", "to: http://a is named twice; give it a weight"),
            (
                "to=http://a;weight=2,http://b weights=1,2",
                "weights: name the weights either here or in `to`",
            ),
            ("to=http://a weights=1,2", "weights: there are more weights than origins"),
            (
                "to=http://a balance=best",
                "balance: must be round-robin, least-outstanding or two-choices",
            ),
            (
                "to=http://a connections=8 connections-per-client=9",
                "connections-per-client: must be 8 or less, the value of `connections`",
            ),
            ("to=http://a host=a/b", "host: must be keep, origin, or a name like example.org"),
            ("to=http://a check=health", "check: must be a path like /health, or off"),
        ] {
            assert_eq!(ProxyRule::parse(text).unwrap_err(), expected);
        }
        let unknown = ProxyRule::parse("to=http://a retries=3").unwrap_err();
        assert!(unknown.starts_with("unknown key `retries`; the keys are path, to, "), "{unknown}");
        let fault = Proxy::to(["http://a"]).with("kept", "x").at("/").unwrap_err();
        assert_eq!(fault, "`.proxy(\"/\", ..)`: kept: must be a whole number, 0 or more");
    }
}
