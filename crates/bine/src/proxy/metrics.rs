//! The metrics of the reverse proxy.

use std::sync::atomic::Ordering;

use super::active::ActiveRules;
use super::origin::ProxyOrigin;
use crate::prometheus::PrometheusText;

/// Writes the metrics of all origins.
pub(super) fn write(rules: &ActiveRules, text: &mut PrometheusText) {
    let rules = rules.all();
    let origins = || {
        rules
            .iter()
            .flat_map(|rule| rule.origins.iter().map(|origin| (&*rule.rule.path, &**origin)))
    };
    if origins().next().is_none() {
        return;
    }
    let mut requests = text.counter(
        "bine_proxy_requests_total",
        "Requests to an origin by outcome: the class of the status, failed without a response, or cut in its content.",
    );
    for (path, origin) in origins() {
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(&origin.counts.answered);
        let others = [("failed", &origin.counts.failed), ("cut", &origin.counts.cut)];
        for (outcome, count) in classes.chain(others) {
            let labels = [("path", path), ("origin", &*origin.name), ("outcome", outcome)];
            requests.with(&labels, count.load(Ordering::Relaxed));
        }
    }
    let mut gauge = |name, help, value: &dyn Fn(&ProxyOrigin) -> u64| {
        let mut family = text.gauge(name, help);
        for (path, origin) in origins() {
            family.with(&[("path", path), ("origin", &origin.name)], value(origin));
        }
    };
    gauge("bine_proxy_outstanding", "Requests that an origin answers now.", &|origin| {
        origin.places.running() as u64
    });
    gauge("bine_proxy_waiting", "Requests that wait for a place at an origin.", &|origin| {
        origin.places.waiting() as u64
    });
    gauge("bine_proxy_idle_connections", "Idle connections to an origin.", &|origin| {
        origin.pool.idle() as u64
    });
    gauge("bine_proxy_up", "Whether an origin gets requests.", &|origin| u64::from(origin.is_up()));
    let mut rejected = text.counter(
        "bine_proxy_rejected_total",
        "Requests without a place at an origin, by the limit: that of the origin, that of one client, or that of the queue.",
    );
    for (path, origin) in origins() {
        for (reason, count) in origin.places.refused() {
            let labels = [("path", path), ("origin", &*origin.name), ("reason", reason)];
            rejected.with(&labels, count);
        }
    }
    let mut retries = text
        .counter("bine_proxy_retries_total", "Requests that were sent again on a new connection.");
    for (path, origin) in origins() {
        let count = origin.counts.retried.load(Ordering::Relaxed);
        retries.with(&[("path", path), ("origin", &origin.name)], count);
    }
}
