//! A NATS server as a child process, and reserved ports for other programs, for tests.
#![forbid(unsafe_code)]

mod folder;
mod reserved_port;
mod server;
mod wait;

pub use folder::Folder;
pub use reserved_port::ReservedPort;
pub use server::NatsServer;
pub use wait::{DEADLINE, wait_until};
