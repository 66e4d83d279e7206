//! Decides that the front door keeps what it promises to programs and to those they serve.

mod access;
mod actions;
mod admission;
mod app;
mod arguments;
mod auction;
mod channels;
mod conversation;
mod durable;
mod examples;
mod faults;
mod followers;
mod following;
mod frames;
mod framing;
mod full_disk;
mod harness;
mod headers;
mod held;
mod home;
mod inert;
mod kept;
mod lease;
mod live;
mod logins;
mod macros;
mod metrics;
mod origins;
mod pages;
mod presence;
mod query;
mod quotas;
mod ranges;
mod remote;
mod rules;
mod scheduling;
mod services;
mod sessions;
mod stop;
mod style;
mod tables;
mod testing;
mod trees;
mod watchdog;
mod websocket;
mod xhtml;

// The programs of these tests are one binary. What lives in one would put the script into the pages of all.
bine::__private::submit! { bine::__private::Has::BarePages }
