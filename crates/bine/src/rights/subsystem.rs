//! Rights as a subsystem of a program: its method of [`App`], and its start.

use std::sync::Arc;

use super::access_rules::AccessRules;
use super::choices::RightChoices;
use super::commands;
use super::engine::RightsEngine;
use super::rights_table::{RightsTable, RuleSource};
use super::{declared, reload_endpoint, rows};
use crate::app::App;
use crate::configuration::Configuration;
use crate::listing::Listed;
use crate::store::{self, Options, Store, Transaction};
use crate::subsystem::{Definition, Outline, Registration, Running, Start, Subsystem};

/// The rights of a program that has not started.
#[derive(Default)]
struct RightsSubsystem {
    /// The rules of the program, if it has any.
    rules: Option<AccessRules>,
    /// The rules and memberships of the configuration.
    configured: RuleSource,
    index_names: Vec<String>,
    engine: Option<Arc<RightsEngine>>,
}

// Rights precede all subsystems that use the guard.
inventory::submit! {
    Registration { rank: 3, create: || Box::new(RightsSubsystem::default()) }
}

impl App {
    /// Sets which users may use which paths and channels, and lets commands such as `bine user
    /// grant`, the configuration and the program's own [`Rights`](crate::Rights) add rules. Paths
    /// without a rule are open to everyone.
    pub fn rights(mut self, rules: AccessRules) -> Self {
        self.subsystems.get_mut::<RightsSubsystem>().rules = Some(rules);
        self
    }
}

impl RightsSubsystem {
    fn is_used(&self, outline: &Outline<'_>) -> bool {
        self.rules.is_some()
            || !self.configured.is_empty()
            || outline.declared_rules.is_some()
            || outline.default_rule.group.is_some()
            || outline.routes.iter().any(|route| {
                route.info.rule.is_some_and(|rule| rule.group.is_some())
                    || route
                        .needs
                        .requirements
                        .iter()
                        .any(|need| need.kind == std::any::TypeId::of::<RightsEngine>())
            })
    }
}

impl Subsystem for RightsSubsystem {
    fn needs_store(&self, outline: &Outline<'_>) -> bool {
        self.is_used(outline)
    }

    fn configure(&mut self, configuration: &Configuration) {
        self.configured = RightChoices::of(configuration);
        self.index_names = RightChoices::index_names(configuration);
    }

    fn needs_sessions(&self, outline: &Outline<'_>) -> bool {
        self.is_used(outline)
    }

    fn sessions(
        &mut self,
        outline: &Outline<'_>,
    ) -> Option<Arc<dyn crate::request_session::SessionProvider>> {
        // The only step that sees the routes and precedes `define`.
        if self.rules.is_none() && self.is_used(outline) {
            self.rules = Some(AccessRules::new());
        }
        None
    }

    fn list(&self, outline: &Outline<'_>, listed: &mut Vec<Listed>) {
        let Some(rules) = &self.rules else { return };
        let mut table = RightsTable::new(rules.source().clone().with_administration());
        table.configure(self.configured.clone(), self.index_names.clone());
        if let Some(declared) = &outline.declared_rules
            && let Ok(source) = declared::read(declared)
        {
            table.declare(source, declared.source);
        }
        super::list::add_rules(&table, listed);
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        let Some(rules) = self.rules.take() else {
            definition.running.push(Arc::new(WithoutRights));
            return Ok(());
        };
        self.configured.check()?;
        let (program, log_in_page) = rules.checked()?;
        let engine = Arc::new(RightsEngine::new(program.with_administration(), log_in_page));
        engine
            .configure(std::mem::take(&mut self.configured), std::mem::take(&mut self.index_names));
        definition.guard = Some(Arc::clone(&engine) as _);
        definition.mounts.push(reload_endpoint::mount(&engine));
        definition.states.share(Arc::clone(&engine));
        definition.running.push(Arc::new(RunningRights(Arc::clone(&engine))));
        self.engine = Some(engine);
        Ok(())
    }

    fn declare(&self, options: Options) -> Options {
        if self.engine.is_some() { rows::declare(options) } else { options }
    }

    fn restore(&mut self, store: &Store) -> Result<(), String> {
        self.engine.as_ref().map_or(Ok(()), |engine| engine.follow(store))
    }

    fn start(&mut self, start: &Start<'_>) -> Result<(), String> {
        if let Some(engine) = &self.engine {
            engine.start(start.shared);
        }
        Ok(())
    }
}

/// The hooks of rights while the program runs.
struct RunningRights(Arc<RightsEngine>);

impl Running for RunningRights {
    fn check_configuration(&self, configuration: &Configuration) -> Result<(), String> {
        RightChoices::of(configuration).check()
    }

    fn use_configuration(&self, configuration: &Configuration) {
        self.0.configure(RightChoices::of(configuration), RightChoices::index_names(configuration));
    }

    fn remove_user(&self, change: &mut Transaction, user: &str) -> Result<(), store::Error> {
        rows::forget_user(change, user, &self.0.names().key(user))?;
        Ok(())
    }

    fn command(&self, words: &[String]) -> Option<Result<String, String>> {
        commands::run(&self.0, words)
    }
}

/// The hooks of a program that started without rights.
struct WithoutRights;

impl Running for WithoutRights {
    /// Without an effect of the rule, a path would stay open.
    fn check_configuration(&self, configuration: &Configuration) -> Result<(), String> {
        if RightChoices::of(configuration).is_empty() {
            return Ok(());
        }
        Err("rule, group: the server started without rules; restart it to use these".to_owned())
    }

    fn command(&self, words: &[String]) -> Option<Result<String, String>> {
        let is_own = commands::is_command(words);
        is_own.then(|| Err("this server runs without rights: add `.rights(AccessRules::new())` to the program, or a `rule` to the configuration file, and restart it".to_owned()))
    }
}
