//! The metrics endpoint: a separate small server with a separate address, so that neither load nor
//! a busy thread of the program delays its responses.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bine_admission::AdmissionSettings;
use bine_http::{Head, Method, Reply, SecurityHeaders, Status};
use bine_log as log;
use bine_server::{
    Address, Answer, ClientAddress, Clock, Guards, Handler, HandlerContext, Identity, Incoming,
    Listen, Outgoing, Responder, Server, Settings,
};

use super::Metrics;
use crate::hosts::{HostChoice, Hosts, LocalHosts};
use crate::prometheus::MEDIA_TYPE;

/// The server of the metrics endpoint. Dropping it stops the server.
pub(crate) struct MetricsServer {
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

/// The most connections: only monitoring systems connect here.
const CONNECTIONS: usize = 64;

impl MetricsServer {
    /// Opens the address.
    ///
    /// # Errors
    ///
    /// The address cannot be opened.
    pub(crate) fn open(listen: &Listen, metrics: Arc<Metrics>) -> Result<Self, String> {
        let settings = settings(listen);
        let hosts = Hosts::of(&HostChoice::Auto, Vec::new(), [], &settings.listeners);
        let handler = Arc::new(MetricsHandler(metrics, Arc::new(hosts)));
        let server = Server::open(settings, handler, None);
        let server = server.map_err(|error| format!("metrics: {error}"))?;
        Ok(Self { server: Arc::new(server), thread: None })
    }

    /// Starts to serve.
    ///
    /// # Errors
    ///
    /// The thread cannot be created.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        let server = Arc::clone(&self.server);
        let thread = thread::Builder::new().name("bine metrics".to_owned()).spawn(move || {
            if let Err(error) = server.run() {
                log::warn(format_args!("metrics: {error}"));
            }
        })?;
        self.thread = Some(thread);
        Ok(())
    }

    /// The address of the endpoint, for people.
    pub(crate) fn url(&self) -> String {
        match self.server.addresses().next() {
            Some(Address::Tcp(address)) => format!("http://{address}/metrics"),
            Some(other) => format!("{other}, /metrics"),
            None => String::new(),
        }
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        // The second call skips the wait for open connections.
        self.server.stop();
        self.server.stop();
        if let Some(thread) = self.thread.take() {
            // The thread ends by itself; if it panicked, the panic has been logged.
            let _ = thread.join();
        }
    }
}

fn settings(listen: &Listen) -> Settings {
    Settings {
        listeners: vec![listen.clone()],
        scheduler: "event".to_owned(),
        loops: 1,
        workers: 1,
        connections: Some(CONNECTIONS),
        // The limits of the process are exhausted by the program. Under such pressure, monitoring
        // must still work, and the log must not report it twice.
        guards: Guards::OFF,
        // The endpoint has no sessions either.
        admission: AdmissionSettings { is_on: false, ..AdmissionSettings::default() },
        security: SecurityHeaders::NOSNIFF.with(SecurityHeaders::SAME_ORIGIN_FRAMES),
        ..Settings::default()
    }
}

struct MetricsHandler(Arc<Metrics>, Arc<Hosts>);

impl Handler for MetricsHandler {
    fn local(&self, handler_context: HandlerContext) -> Box<dyn Responder> {
        Box::new(LocalMetricsHandler {
            metrics: Arc::clone(&self.0),
            hosts: self.1.local(),
            clock: handler_context.clock,
        })
    }
}

struct LocalMetricsHandler {
    metrics: Arc<Metrics>,
    hosts: LocalHosts,
    clock: Rc<Clock>,
}

impl Responder for LocalMetricsHandler {
    fn identify(&mut self, _head: &Head<'_>, _peer: ClientAddress) -> Identity {
        Identity::Anonymous
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let path = request.head.path();
        let is_safe = matches!(request.head.method(), Method::Get | Method::Head);
        let (status, body) = match &*path {
            _ if !self.hosts.accept(request.head.authority_bytes(), request.peer) => (
                Status::MISDIRECTED_REQUEST,
                "use an IP address, or a name of this machine\n".to_owned(),
            ),
            _ if !is_safe => {
                (Status::METHOD_NOT_ALLOWED, "only GET and HEAD are supported\n".to_owned())
            }
            "/metrics" => (Status::OK, self.metrics.text()),
            other => self.metrics.health(other).unwrap_or_else(|| {
                (Status::NOT_FOUND, "the paths here are /metrics, /health and /ready\n".to_owned())
            }),
        };
        let mut reply = Reply::begin(out.buffer, request.exchange, status, &self.clock.date());
        let result = reply.field("Content-Type", MEDIA_TYPE);
        debug_assert!(result.is_ok(), "it is a plain value");
        reply.static_lines("Cache-Control: no-store\r\n");
        if !is_safe {
            reply.static_lines("Allow: GET, HEAD\r\n");
        }
        reply.whole(body.as_bytes());
        Answer::Written { close: false }
    }

    fn last(&self) -> &'static str {
        "metrics"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While all cores were busy, requests for metrics took long enough that the endpoint's own
    /// server reported an overload, in the log of the program.
    #[test]
    fn metrics_server_does_not_count_sessions() {
        let listen = Listen::on("127.0.0.1:0".parse().unwrap());
        let server = Server::open(settings(&listen), Arc::new(NoOne), None).unwrap();
        assert!(!server.admission().is_on());
    }

    struct NoOne;

    impl Handler for NoOne {
        fn local(&self, _bench: HandlerContext) -> Box<dyn Responder> {
            unreachable!("it is not run")
        }
    }
}
