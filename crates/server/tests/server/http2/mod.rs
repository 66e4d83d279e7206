//! Tests of HTTP/2: the same program over streams of one connection.
//!
//! The client is that of the crate `h2`; attacks write their frames themselves.

mod attacks;
mod client;
mod exchanges;
mod frames;
mod limits;
