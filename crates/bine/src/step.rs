//! The types for programs that replace the step from request to response: for a filter that sees
//! bytes, a proxy, a load balancer.
//!
//! [`App::step`](crate::App::step) passes the program's own [`Handler`] and takes its replacement.
//! Each thread asks the handler once for a [`Responder`], which answers the requests of that
//! thread's connections.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use bine::App;
//! use bine::step::{Answer, Bench, Handler, Head, Incoming, Outgoing, Peer, Responder, Who};
//!
//! /// Counts the requests of each thread, and delegates them to the program.
//! struct Counting(Arc<dyn Handler>);
//!
//! struct Counter {
//!     own: Box<dyn Responder>,
//!     count: u64,
//! }
//!
//! impl Handler for Counting {
//!     fn local(&self, bench: Bench) -> Box<dyn Responder> {
//!         Box::new(Counter { own: self.0.local(bench), count: 0 })
//!     }
//! }
//!
//! impl Responder for Counter {
//!     fn admit(&mut self, head: &Head<'_>, peer: Peer) -> Who {
//!         self.own.admit(head, peer)
//!     }
//!
//!     fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
//!         self.count += 1;
//!         self.own.respond(request, out)
//!     }
//!
//!     fn failed(&mut self, request: &Incoming<'_>, out: &mut Vec<u8>) {
//!         self.own.failed(request, out);
//!     }
//!
//!     fn last(&self) -> &'static str {
//!         self.own.last()
//!     }
//! }
//!
//! fn main() -> bine::Exit {
//!     App::new().step(|own| Arc::new(Counting(own))).run()
//! }
//! ```

pub use bine_http::{BodyFraming, Exchange, Head, Reply};
pub use bine_server::{
    Answer, Bench, Body, Clock, Done, FilePart, Finished, Follow, Handler, Incoming, LaterReply,
    Outgoing, Peer, Responder, Retained, Sender, Spool, Stream, Visitor, Who, Work, Writing,
};
