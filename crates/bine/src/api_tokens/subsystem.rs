//! The API tokens as a subsystem of a program: its method of [`App`], and its start.

use std::sync::{Arc, OnceLock, Weak};

use super::choices::TokenChoices;
use super::token_row::TokenRow;
use super::token_store::TokenStore;
use super::{command, pages};
use crate::app::App;
use crate::audit;
use crate::configuration::Configuration;
use crate::credentials::CredentialSource;
use crate::route::Route;
use crate::store::{self, Options, Transaction};
use crate::subsystem::{Definition, Outline, Registration, Running, Shared, Start, Subsystem};
use crate::text::Text;

/// The API tokens of a program that has not started.
#[derive(Default)]
struct TokenSubsystem {
    /// Set if the program has API tokens.
    token_store: Option<Arc<TokenStore>>,
    /// Set once the program is defined.
    running: Option<Arc<RunningTokens>>,
}

inventory::submit! {
    Registration { rank: 15, create: || Box::new(TokenSubsystem::default()) }
}

impl App {
    /// Lets users create API tokens at `/account/tokens`: each has a scope and expires. A request
    /// with a token has its user everywhere a session does; see [`ApiTokens`](crate::ApiTokens).
    ///
    /// A program replaces the pages by its own at the same path.
    pub fn api_tokens(mut self) -> Self {
        self.subsystems.get_mut::<TokenSubsystem>().token_store = Some(Arc::default());
        self
    }
}

impl Subsystem for TokenSubsystem {
    fn configure(&mut self, configuration: &Configuration) {
        let choices: TokenChoices = configuration.choice();
        if choices.is_on {
            self.token_store.get_or_insert_default();
        }
    }

    fn needs_store(&self, _outline: &Outline<'_>) -> bool {
        self.token_store.is_some()
    }

    fn needs_sessions(&self, _outline: &Outline<'_>) -> bool {
        self.token_store.is_some()
    }

    fn routes(&mut self, _outline: &Outline<'_>) -> Vec<Route> {
        if self.token_store.is_some() { pages::routes() } else { Vec::new() }
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        if let Some(token_store) = &self.token_store {
            definition.states.add(Arc::clone(token_store));
            let source: Arc<dyn CredentialSource> = Arc::<TokenStore>::clone(token_store);
            definition.credentials = Some(source);
            let (token_store, shared) = (Arc::clone(token_store), OnceLock::new());
            let running = Arc::new(RunningTokens { token_store, shared });
            definition.running.push(Arc::<RunningTokens>::clone(&running));
            self.running = Some(running);
        } else {
            definition.running.push(Arc::new(WithoutTokens));
        }
        Ok(())
    }

    fn declare(&self, options: Options) -> Options {
        if self.token_store.is_some() {
            audit::declare(options.table::<TokenRow>())
        } else {
            options
        }
    }

    fn start(&mut self, start: &Start<'_>) -> Result<(), String> {
        let Some((token_store, store)) = self.token_store.as_ref().zip(start.store()) else {
            return Ok(());
        };
        token_store.open(store);
        if let Some(running) = &self.running {
            // The program starts once, so the cell is empty.
            let _ = running.shared.set(Arc::downgrade(start.shared));
        }
        // Weak references: the store is part of what they refer to.
        let (shared, own) = (Arc::downgrade(start.shared), Arc::downgrade(token_store));
        store.observe(move |changes| {
            let (Some(shared), Some(own)) = (shared.upgrade(), own.upgrade()) else { return };
            let Some(store) = own.opened() else { return };
            let rows = store.read().without_tracking().changed::<TokenRow>(changes);
            if rows.is_none_or(|rows| !rows.is_empty()) {
                shared.running.iter().for_each(|running| running.end_logins(rows));
            }
        });
        Ok(())
    }
}

/// The hooks of a program without API tokens.
struct WithoutTokens;

impl Running for WithoutTokens {
    fn command(&self, words: &[String]) -> Option<Result<String, String>> {
        command::is_command(words).then(|| {
            Err("this server has no API tokens: set `api-tokens = on` in its configuration, or add `.api_tokens()` to the program, and restart it".to_owned())
        })
    }
}

/// The hooks of API tokens while the program runs.
struct RunningTokens {
    token_store: Arc<TokenStore>,
    /// A weak reference: the hooks are part of what it refers to. Set at the start.
    shared: OnceLock<Weak<Shared>>,
}

impl Running for RunningTokens {
    fn remove_user(&self, change: &mut Transaction, user: &str) -> Result<(), store::Error> {
        self.revoke_credentials(change, user)
    }

    fn revoke_credentials(&self, change: &mut Transaction, user: &str) -> Result<(), store::Error> {
        let rows: Vec<_> = change.find(TokenRow::BY_USER, Text::from(user)).collect();
        for row in rows {
            change.remove(row.id)?;
        }
        Ok(())
    }

    fn command(&self, words: &[String]) -> Option<Result<String, String>> {
        let shared = self.shared.get().and_then(Weak::upgrade);
        command::run(words, &self.token_store, shared.as_deref())
    }
}
