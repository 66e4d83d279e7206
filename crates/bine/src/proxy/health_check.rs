//! Active health checks: a thread that requests a path of each origin at intervals.

use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use bine_client::{Pool, PoolLimits};
use bine_http::{Limits, ResponseParser};
use bine_log as log;
use tokio::runtime;
use tokio::task::JoinSet;

use super::active::{ActiveRule, ActiveRules};
use super::origin::ProxyOrigin;
use super::origin_tls::describe;

/// The thread of the checks. It runs while a rule has checks.
#[derive(Default)]
pub(super) struct HealthChecker(Mutex<Option<(Sender<()>, JoinHandle<()>)>>);

/// The limit for one check, if the interval is not shorter.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the thread looks for checks that are due.
const TICK: Duration = Duration::from_millis(100);

impl HealthChecker {
    /// Starts the thread, if a rule has checks and it does not run yet.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub(super) fn start(&self, rules: &Arc<ActiveRules>) -> Result<(), String> {
        if rules.all().iter().all(|rule| rule.rule.check.is_none()) {
            return Ok(());
        }
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_some() {
            return Ok(());
        }
        let wrong = |error| format!("the health checks of the proxy cannot be started: {error}");
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(wrong)?;
        let (stop, stops) = channel();
        let rules = Arc::clone(rules);
        let checks = move || {
            let mut due = HashMap::new();
            while stops.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                runtime.block_on(check_due(&rules, &mut due));
            }
        };
        let thread = Builder::new().name("proxy checks".to_owned()).spawn(checks).map_err(wrong)?;
        *running = Some((stop, thread));
        Ok(())
    }

    /// Stops the thread. A check in progress ends first, within its limit.
    pub(super) fn stop(&self) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = running {
            drop(stop);
            // The thread has ended after a panic too.
            let _ = thread.join();
        }
    }
}

/// Runs the checks that are due, all at the same time. `due` has the next moment of each origin.
async fn check_due(rules: &ActiveRules, due: &mut HashMap<String, Instant>) {
    let (now, mut checks) = (Instant::now(), JoinSet::new());
    let mut next = HashMap::new();
    for rule in &*rules.all() {
        let Some(path) = &rule.rule.check else { continue };
        for origin in &rule.origins {
            let key = format!("{} {}", rule.rule.path, origin.name);
            let moment = due.get(&key).copied().unwrap_or(now);
            if moment <= now {
                next.insert(key, now + rule.rule.check_interval);
                checks.spawn(check(Arc::clone(rule), Arc::clone(origin), path.clone()));
            } else {
                next.insert(key, moment);
            }
        }
    }
    // Origins that a reload has removed are left out.
    *due = next;
    while checks.join_next().await.is_some() {}
}

/// Checks one origin and records the result.
async fn check(rule: Arc<ActiveRule>, origin: Arc<ProxyOrigin>, path: String) {
    let patience = PATIENCE.min(rule.rule.check_interval.max(Duration::from_millis(500)));
    let fault = match tokio::time::timeout(patience, ask(&origin, &path, patience)).await {
        Ok(Ok(200..400)) => None,
        Ok(Ok(status)) => Some(format!("it answered {status}")),
        Ok(Err(fault)) => Some(fault),
        Err(_) => Some(format!("no answer within {patience:?}")),
    };
    if !origin.note_check(fault.is_some()) {
        return;
    }
    match fault {
        Some(fault) => {
            log::warn(format_args!("proxy: the check of {} failed: {fault}", origin.name));
        }
        None => log::notice(format_args!("proxy: {} is up again", origin.name)),
    }
}

/// Requests the path and returns the status.
async fn ask(origin: &ProxyOrigin, path: &str, patience: Duration) -> Result<u16, String> {
    let address = origin.pool.address();
    // Without a place and without the kept connections, which belong to requests of clients.
    let limits = PoolLimits { idle: 0, idle_time: patience, connect_time: patience };
    let pool =
        Pool::new(address.clone(), origin.tls.as_ref().map(|loaded| loaded.tls.clone()), limits);
    let mut connection = pool.connect(true).await.map_err(|failure| describe(&failure))?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nUser-Agent: bine-check\r\n\r\n",
        address.authority()
    );
    let fault = |fault: bine_client::ExchangeFault| fault.to_string();
    connection.send(request.as_bytes(), patience).await.map_err(fault)?;
    let mut parser = ResponseParser::new(false);
    let status = |head: &bine_http::ResponseHead<'_>| head.status().code();
    connection.head(&mut parser, &Limits::default(), patience, status).await.map_err(fault)
}
