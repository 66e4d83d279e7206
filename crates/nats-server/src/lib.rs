//! A NATS server as a child process, for tests.
#![forbid(unsafe_code)]

mod folder;
mod reserved_port;
mod server;
mod wait;

pub use folder::Folder;
pub use reserved_port::ReservedPort;
pub use server::NatsServer;
pub use wait::{DEADLINE, wait_until};
