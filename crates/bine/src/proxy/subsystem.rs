//! The reverse proxy as a subsystem of a program: its method of [`App`], its start, its reloads.

use std::sync::Arc;

use bine_log as log;

use super::active::ActiveRules;
use super::choices::ProxyChoices;
use super::endpoint::ProxyEndpoint;
use super::health_check::HealthChecker;
use super::metrics;
use super::rule::{Proxy, ProxyRule};
use crate::app::App;
use crate::configuration::Configuration;
use crate::listing::Listed;
use crate::methods::Methods;
use crate::prometheus::PrometheusText;
use crate::subsystem::{Definition, Fallback, Outline, Registration, Running, Start, Subsystem};

/// The proxies of a program that has not started.
#[derive(Default)]
struct ProxySubsystem {
    /// Those of the program, or the faults of their settings.
    own: Vec<Result<ProxyRule, String>>,
    /// Those of the configuration.
    configured: Vec<ProxyRule>,
    running: Option<Arc<RunningProxy>>,
}

inventory::submit! {
    Registration { rank: 85, create: || Box::new(ProxySubsystem::default()) }
}

impl App {
    /// Lets origins answer the requests for `path` and all paths below it, unless the program has a
    /// route. Tables `[[proxy]]` of the configuration do the same; one for the same path and hosts
    /// replaces this one.
    ///
    /// ```
    /// use bine::App;
    /// use bine::proxy::{LeastOutstanding, Proxy};
    ///
    /// let proxy = Proxy::to(["http://127.0.0.1:9000", "http://127.0.0.1:9001"])
    ///     .with("first-byte-time", "10s")
    ///     .balance(LeastOutstanding::default());
    /// let app = App::new().proxy("/shop", proxy);
    /// # drop(app);
    /// ```
    pub fn proxy(mut self, path: &str, proxy: Proxy) -> Self {
        self.subsystems.get_mut::<ProxySubsystem>().own.push(proxy.at(path));
        self
    }
}

impl Subsystem for ProxySubsystem {
    fn configure(&mut self, configuration: &Configuration) {
        ProxyChoices(self.configured) = configuration.choice();
    }

    fn has_content(&self) -> bool {
        !self.own.is_empty() || !self.configured.is_empty()
    }

    fn list(&self, _outline: &Outline<'_>, listed: &mut Vec<Listed>) {
        let own = self.own.iter().filter_map(|rule| rule.as_ref().ok());
        for rule in own.chain(&self.configured) {
            let hosts: Vec<_> = rule.hosts.iter().map(ToString::to_string).collect();
            let origins: Vec<_> = rule.origins.iter().map(|one| one.address.to_string()).collect();
            let path = format!("{}{}", hosts.join(" "), rule.path);
            let methods = Methods::GET.or(Methods::POST);
            listed.push(Listed::new(methods, &path, "proxy", &origins.join(" ")));
        }
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        let own = std::mem::take(&mut self.own).into_iter().collect::<Result<Vec<_>, _>>()?;
        for (place, rule) in own.iter().enumerate() {
            if own[..place].iter().any(|other| other.overlaps(rule)) {
                return Err(format!(
                    "the program has two proxies at {}; remove one, or give them `hosts`",
                    rule.path
                ));
            }
        }
        let running = Arc::new(RunningProxy { own, ..RunningProxy::default() });
        running.replace(self.configured.clone());
        let handler = Arc::new(ProxyEndpoint(Arc::clone(&running.rules)));
        definition.fallbacks.push(Fallback { name: "proxy", handler });
        definition.running.push(Arc::clone(&running) as _);
        self.running = Some(running);
        Ok(())
    }

    fn start(&mut self, _start: &Start<'_>) -> Result<(), String> {
        self.running.as_ref().map_or(Ok(()), |running| running.checker.start(&running.rules))
    }
}

/// The proxies of a running program.
#[derive(Default)]
struct RunningProxy {
    /// Those of the program.
    own: Vec<ProxyRule>,
    rules: Arc<ActiveRules>,
    checker: HealthChecker,
}

impl RunningProxy {
    /// Applies the rules of a configuration, together with those of the program.
    fn replace(&self, configured: Vec<ProxyRule>) {
        let is_replaced = |rule: &&ProxyRule| !configured.iter().any(|other| other.overlaps(rule));
        let own: Vec<_> = self.own.iter().filter(is_replaced).cloned().collect();
        self.rules.replace(own.into_iter().chain(configured).collect());
    }
}

impl Running for RunningProxy {
    fn use_configuration(&self, configuration: &Configuration) {
        let ProxyChoices(configured) = configuration.choice();
        self.replace(configured);
        if let Err(error) = self.checker.start(&self.rules) {
            log::error(format_args!("{error}"));
        }
    }

    fn write_metrics(&self, text: &mut PrometheusText) {
        metrics::write(&self.rules, text);
    }

    fn stop(&self) {
        self.checker.stop();
    }
}
