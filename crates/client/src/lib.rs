//! Connections to origins: a pool for each origin, and exchanges with time limits.
//!
//! An [`OriginAddress`] names a server. Its [`Pool`] opens connections and keeps idle ones. A
//! [`PooledConnection`] sends a request and receives the response in pieces; its parser is
//! [`ResponseParser`](bine_http::ResponseParser).
#![forbid(unsafe_code)]

mod address;
mod connection;
mod pool;
mod tls;

pub use address::{BadOrigin, OriginAddress};
pub use connection::{Connection, ExchangeFault};
pub use pool::{ConnectFailure, Pool, PoolLimits, PooledConnection};
pub use tls::{BadOriginTls, OriginTls, TlsFault, TlsFaultKind};
