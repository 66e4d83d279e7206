//! The reverse proxy: requests for some paths are answered by other servers, the origins.
//!
//! Configure it by tables `[[proxy]]`, or in a program by [`App::proxy`](crate::App::proxy):
//!
//! ```
//! use bine::App;
//! use bine::proxy::Proxy;
//!
//! let app = App::new().proxy("/", Proxy::to(["http://127.0.0.1:9000"]));
//! # drop(app);
//! ```
//!
//! A route of the program precedes the proxy, which precedes files. Rights, admission and the list of
//! hosts apply as for pages. Each request to an origin is written anew from parsed values.

mod active;
mod balancer;
mod choices;
mod encoding;
mod endpoint;
mod exchange;
mod health_check;
mod metrics;
mod origin;
mod origin_settings;
mod origin_tls;
mod place_book;
mod places;
mod request_fields;
mod request_head;
mod response_head;
mod rule;
mod subsystem;
mod tunnel;

pub use balancer::{
    BalancePolicy, BalancedRequest, LeastOutstanding, OriginCandidate, RoundRobin, TwoChoices,
};
pub use rule::Proxy;
