//! Decides that the front door keeps what it promises to programs and to those they serve.

mod app;
mod arguments;
mod channels;
mod conversation;
mod durable;
mod examples;
mod faults;
mod followers;
mod following;
mod framing;
mod harness;
mod kept;
mod macros;
mod pages;
mod scheduling;
mod sessions;
mod stop;
mod style;
mod tables;
mod trees;
mod websocket;
mod xhtml;
