//! Files of the browser in a program in Rust, through the whole server.

mod guide;
mod modules;
mod shop;
mod types;
mod unknown_service;
