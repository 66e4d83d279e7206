//! Decides where figures are told: at an address of their own, by a small server of its own, so that neither load nor a
//! busy thread of the program keeps anybody from reading them.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bine_admission::Terms;
use bine_http::{Head, Method, Reply, SecurityHeaders, Status};
use bine_log as log;
use bine_server::{
    Address, Answer, Bench, Clock, Guards, Handler, Incoming, Listen, Outgoing, Peer, Responder,
    Server, Settings, Who,
};

use super::Metrics;
use super::text::MEDIA_TYPE;
use crate::hosts::{HostChoice, Hosts, LocalHosts};

/// A server of figures, which ends with this.
pub(crate) struct Desk {
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

/// Nobody but a few who watch has anything to ask here.
const CONNECTIONS: usize = 64;

impl Desk {
    /// Opens the address, which is held from here on.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub(crate) fn open(listen: &Listen, metrics: Arc<Metrics>) -> Result<Self, String> {
        let settings = settings(listen);
        let hosts = Hosts::of(&HostChoice::Auto, Vec::new(), [], &settings.listeners);
        let teller = Arc::new(Teller(metrics, Arc::new(hosts)));
        let server = Server::open(settings, teller, None);
        let server = server.map_err(|error| format!("metrics: {error}"))?;
        Ok(Self { server: Arc::new(server), thread: None })
    }

    /// Serves from here on.
    ///
    /// # Errors
    ///
    /// There is no thread for it.
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

    /// Where figures are to be had, as people write it.
    pub(crate) fn url(&self) -> String {
        match self.server.addresses().next() {
            Some(Address::Tcp(address)) => format!("http://{address}/metrics"),
            Some(other) => format!("{other}, /metrics"),
            None => String::new(),
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Twice: whoever reads at this moment is not waited for.
        self.server.stop();
        self.server.stop();
        if let Some(thread) = self.thread.take() {
            // It ends by itself; if by a panic, that has been told.
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
        // What is wanted is the process's: when it is, whoever watches must see that, and hears of it once.
        guards: Guards::OFF,
        // Nor has it visitors.
        admission: Terms { is_on: false, ..Terms::default() },
        security: SecurityHeaders::NOSNIFF.with(SecurityHeaders::SAME_ORIGIN_FRAMES),
        ..Settings::default()
    }
}

struct Teller(Arc<Metrics>, Arc<Hosts>);

impl Handler for Teller {
    fn local(&self, bench: Bench) -> Box<dyn Responder> {
        Box::new(LocalTeller {
            metrics: Arc::clone(&self.0),
            hosts: self.1.local(),
            clock: bench.clock,
        })
    }
}

struct LocalTeller {
    metrics: Arc<Metrics>,
    hosts: LocalHosts,
    clock: Rc<Clock>,
}

impl Responder for LocalTeller {
    fn admit(&mut self, _head: &Head<'_>, _peer: Peer) -> Who {
        Who::Anonymous
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let path = request.head.path();
        let is_safe = matches!(request.head.method(), Method::Get | Method::Head);
        let (status, words) = match &*path {
            _ if !self.hosts.accept(request.head.authority(), request.peer) => (
                Status::MISDIRECTED_REQUEST,
                "ask by an address, or by a name of this machine\n".to_owned(),
            ),
            _ if !is_safe => (Status::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned()),
            "/metrics" => (Status::OK, self.metrics.text()),
            other => self.metrics.health(other).unwrap_or_else(|| {
                (Status::NOT_FOUND, "there are /metrics, /health and /ready\n".to_owned())
            }),
        };
        let mut reply = Reply::begin(out.buffer, request.exchange, status, &self.clock.date());
        let told = reply.field("Content-Type", MEDIA_TYPE);
        debug_assert!(told.is_ok(), "it is a plain value");
        reply.static_lines("Cache-Control: no-store\r\n");
        if !is_safe {
            reply.static_lines("Allow: GET, HEAD\r\n");
        }
        reply.whole(words.as_bytes());
        Answer::Written { close: false }
    }

    fn last(&self) -> &'static str {
        "metrics"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While all cores computed, whoever reads figures took the desk long enough for it to say that more visitors come
    /// than can be served: of itself, in the log of the program.
    #[test]
    fn a_desk_counts_no_sessions() {
        let listen = Listen::on("127.0.0.1:0".parse().unwrap());
        let server = Server::open(settings(&listen), Arc::new(NoOne), None).unwrap();
        assert!(!server.admission().is_on());
    }

    struct NoOne;

    impl Handler for NoOne {
        fn local(&self, _bench: Bench) -> Box<dyn Responder> {
            unreachable!("it is not run")
        }
    }
}
