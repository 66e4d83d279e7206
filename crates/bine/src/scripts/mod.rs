//! Applications in TSX: each folder of a site with an `index.tsx` is an application at its URL.
//!
//! The crate `tsx` compiles a module, and the crate `script` runs it; this subsystem joins them with
//! the pages, services, tables and live regions of the program. Each event loop has its own instance
//! of an application and calls it in place
//! ([decision 0017](../../../../docs/decisions/0017-where-scripts-run.md)). The first request loads an
//! application.
//!
//! A script imports its words from the built-in module `bine`. That is JavaScript text
//! ([`words`]) over functions of the host.

mod app_settings;
mod application;
mod arguments;
mod browser_files;
mod browser_linker;
mod call_host;
mod call_state;
mod channel_scope;
mod channels;
mod check;
mod events;
mod faults;
mod fetch;
mod field_errors;
mod folders;
mod frame;
mod generation;
mod host;
mod instance;
mod interned;
mod json;
mod new_applications;
mod page;
mod page_router;
mod positions;
mod remote;
mod routes;
mod rust_services;
mod sealed;
mod service;
mod service_calls;
mod session;
mod source_check;
mod source_mistakes;
mod source_module;
mod start;
mod subsystem;
mod table_failure;
mod tables;
#[cfg(test)]
mod testing;
mod tree_page;
mod upload_set;
mod uploads;
mod watcher;
mod words;

#[doc(hidden)]
pub use check::check_script_calls;
