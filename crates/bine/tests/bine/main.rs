//! Integration tests of the facade crate: programs run as processes and are tested over sockets.

mod access;
mod accounts;
mod actions;
mod admission;
mod api_tokens;
mod app;
mod area_messages;
mod arguments;
mod assets;
mod auction;
mod balancers;
mod channels;
#[cfg(feature = "compress")]
mod compression;
mod conversation;
mod data_browser;
mod durable;
mod examples;
mod faults;
mod field_limits;
mod followers;
mod following;
mod forms;
mod frames;
mod framing;
mod full_disk;
mod harness;
mod headers;
mod held;
mod home;
mod inert;
mod intruders;
mod kanban;
mod kept;
mod layouts;
mod lease;
mod live;
mod logins;
mod macros;
mod messages;
mod metrics;
mod origins;
mod pages;
mod presence;
mod proxies;
mod proxy;
mod proxy_quotas;
mod proxy_security;
mod proxy_sites;
mod proxy_smuggling;
mod proxy_tls;
mod query;
mod quotas;
mod ranges;
mod remote;
mod rights;
mod rights_members;
mod rules;
mod schedule;
mod scheduling;
mod services;
mod sessions;
mod stop;
mod style;
mod tables;
mod testing;
mod trees;
mod unregistered;
mod watchdog;
mod websocket;
mod xhtml;

// All programs of these tests are one binary, so a live region in any of them would add the script
// to every page, and the log of each program would name the tables of all others.
bine::__private::submit! { bine::__private::LinkedFeature::ManyPrograms }
