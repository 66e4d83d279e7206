//! Middleware: the types for programs that wrap or replace the request handler, such as a filter
//! that sees bytes, a proxy or a load balancer.
//!
//! [`App::middleware`](crate::App::middleware) passes the program's own [`Handler`] and takes its
//! replacement. Each thread asks the handler once for a [`Responder`], which answers the requests
//! of that thread's connections.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use bine::App;
//! use bine::middleware::{
//!     Answer, ClientAddress, Handler, HandlerContext, Head, Identity, Incoming, Outgoing,
//!     Responder,
//! };
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
//!     fn local(&self, handler_context: HandlerContext) -> Box<dyn Responder> {
//!         Box::new(Counter { own: self.0.local(handler_context), count: 0 })
//!     }
//! }
//!
//! impl Responder for Counter {
//!     fn identify(&mut self, head: &Head<'_>, peer: ClientAddress) -> Identity {
//!         self.own.identify(head, peer)
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
//!     App::new().middleware(|own| Arc::new(Counting(own))).run()
//! }
//! ```

pub use bine_http::{BodyFraming, Exchange, Head, Reply};
pub use bine_server::{
    Answer, Body, ClientAddress, Clock, Done, FilePart, Finished, Follow, Handler, HandlerContext,
    Identity, Incoming, Outgoing, Principal, ReplyFuture, Responder, Retained, Sender, Spool,
    Stream, StreamFuture, Work,
};
