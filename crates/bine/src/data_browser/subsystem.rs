//! The data browser as a subsystem of a program.

use std::sync::Arc;

use super::address::{PATTERNS, ROOT};
use super::choices::DataBrowserChoices;
use super::endpoint::DataBrowserEndpoint;
use super::request::BrowserState;
use crate::audit;
use crate::configuration::Configuration;
use crate::listing::Listed;
use crate::methods::Methods;
use crate::store::Options;
use crate::subsystem::{Definition, Mount, Outline, Registration, Subsystem};
use crate::tables::HasTables;

inventory::submit! {
    Registration { rank: 89, create: || Box::new(DataBrowserSubsystem::default()) }
}

/// The rule of [`decide`](super::access::decide), for an operator.
const RULE: &str = "administrators; in development this machine too";

/// The data browser of a program that has not started.
#[derive(Default)]
struct DataBrowserSubsystem {
    choices: DataBrowserChoices,
    /// Whether the program has the data browser: it has tables, and the configuration permits it.
    is_present: bool,
}

impl Subsystem for DataBrowserSubsystem {
    fn configure(&mut self, configuration: &Configuration) {
        self.choices = configuration.choice();
    }

    fn list(&self, outline: &Outline<'_>, listed: &mut Vec<Listed>) {
        if !outline.has_tables || !self.choices.is_on {
            return;
        }
        listed.extend(PATTERNS.into_iter().map(|(pattern, has_form)| {
            let post = if has_form { Methods::POST } else { Methods::GET };
            let path = format!("{ROOT}{pattern}");
            let line = Listed::new(Methods::GET.or(post), &path, "data", "data browser");
            line.rule(RULE.to_owned())
        }));
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        let tables = definition.states.find::<HasTables>();
        if let Some(tables) = tables.filter(|_| self.choices.is_on) {
            self.is_present = true;
            let state = Arc::new(BrowserState::new(tables.names.clone()));
            definition.mounts.push(Mount {
                name: "data browser",
                path: ROOT,
                has_descendants: true,
                is_gated: true,
                handler: Arc::new(DataBrowserEndpoint(state)),
            });
        }
        Ok(())
    }

    fn declare(&self, options: Options) -> Options {
        if self.is_present { audit::declare(options) } else { options }
    }
}
