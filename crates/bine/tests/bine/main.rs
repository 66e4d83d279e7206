//! Decides that the front door keeps what it promises to programs and to those they serve.

mod app;
mod arguments;
mod conversation;
mod faults;
mod framing;
mod harness;
mod hello;
mod macros;
mod pages;
mod scheduling;
mod stop;
