//! Rights: which users may use which paths and channels.
//!
//! A rule gives a right to users, groups, or everyone, at the paths of a pattern. The most specific
//! pattern that has a rule decides alone. The rules of the program, of the configuration and of
//! stored rows are united for each pattern. A tree in memory holds all rules; it follows the rows
//! before their commit is acknowledged, so that a change is in effect at once.

mod access_rules;
mod argument;
mod caller;
mod choices;
mod commands;
mod declared;
mod engine;
mod list;
mod reload_endpoint;
mod rights_table;
mod rows;
mod rule;
mod rule_tree;
mod subsystem;
mod who;

pub use access_rules::AccessRules;
pub use argument::Rights;
#[cfg(feature = "script")]
pub(crate) use declared::{check_group, check_rule};
pub use who::{Right, Who};
