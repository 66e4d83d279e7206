//! The start script of a site, `start.ts`: access rules, groups, filters and a scheduler.
//!
//! Serrano, "Hop, a Fast Server for the Diffuse Web", 2009, section 2.4, has a *Runtime Command* file
//! that the server loads at its start; section 2.3 lets it replace the scheduler. The script runs once
//! when the server starts, and its [rules](crate::access_guard::DeclaredRules) join those of the
//! configuration. Each thread that serves requests has an instance for the [`filter`], and one thread
//! has an instance for the [`policy`] of the scheduler.

mod breaches;
mod declarations;
mod dispatcher;
mod events;
mod filter;
mod hidden_files;
mod page_cell;
mod page_place;
mod paths;
mod policy;
mod program;
mod scheduler;
mod script;

pub(super) use dispatcher::Dispatcher;
pub(super) use filter::ScriptFilter;
pub(super) use hidden_files::mount;
pub(super) use page_place::{PagePlace, PageRequest};
pub(super) use scheduler::ScriptScheduler;
pub(super) use script::StartScript;
