//! A NATS server as a child process, for tests.
#![forbid(unsafe_code)]

mod folder;
mod server;
mod wait;

pub use folder::Folder;
pub use server::{NatsServer, free_port};
pub use wait::{DEADLINE, wait_until};
