//! The accounts as a subsystem of a program: the method of [`App`], and the start.

use std::sync::Arc;

use bine_log as log;

use super::Accounts;
use super::account_row::AccountRow;
use super::choices::AccountChoices;
use super::commands::RunningAccounts;
use super::directory::AccountDirectory;
use super::form::STYLE;
use super::settings::{AccountSettings, SignUp};
use super::trusted_hosts::TrustedHosts;
use super::{account_page, pages, services};
use crate::app::App;
use crate::asset;
use crate::audit;
use crate::configuration::Configuration;
use crate::route::Route;
use crate::sessions::SessionStore;
use crate::store::Options;
use crate::subsystem::{Definition, Outline, Registration, Start, Subsystem};
use crate::user_name::NameComparison;

/// The accounts of a program that has not started.
#[derive(Default)]
struct AccountSubsystem {
    /// `None`: the program has no accounts.
    settings: Option<AccountSettings>,
    choices: AccountChoices,
    /// Set once the routes are known.
    directory: Option<Arc<AccountDirectory>>,
    sessions: Option<Arc<SessionStore>>,
}

inventory::submit! {
    Registration { rank: 70, create: || Box::new(AccountSubsystem::default()) }
}

impl App {
    /// Gives the program accounts: pages where visitors sign up, log in and out, change their
    /// account and set a forgotten password, and services for the same. The program's own page at
    /// the same path and method replaces such a page.
    ///
    /// ```
    /// use bine::Accounts;
    /// use bine::prelude::*;
    ///
    /// #[page("/")]
    /// async fn home(user: Option<User>) -> impl Page {
    ///     html!(<p>{match user {
    ///         Some(user) => { Hello {user} }
    ///         None => { <a href="/log-in">"Log in"</a> }
    ///     }}</p>)
    /// }
    ///
    /// let app = App::new().accounts(Accounts::new()).page(home);
    /// # drop(app);
    /// ```
    pub fn accounts(mut self, accounts: Accounts) -> Self {
        self.subsystems.get_mut::<AccountSubsystem>().settings = Some(accounts.0);
        self
    }
}

impl AccountSubsystem {
    fn are_some(&self) -> bool {
        self.settings.is_some() || self.directory.is_some() || self.choices.are_some()
    }
}

impl Subsystem for AccountSubsystem {
    fn needs_store(&self, _outline: &Outline<'_>) -> bool {
        self.are_some()
    }

    fn has_content(&self) -> bool {
        self.are_some()
    }

    fn configure(&mut self, configuration: &Configuration) {
        self.choices = configuration.choice();
    }

    fn routes(&mut self, _outline: &Outline<'_>) -> Vec<Route> {
        let closed = || AccountSettings { sign_up: SignUp::Closed, ..AccountSettings::default() };
        let settings = self.settings.take().or_else(|| self.choices.are_some().then(closed));
        let Some(settings) = settings else { return Vec::new() };
        let style = asset::route(STYLE, "text/css", include_bytes!("accounts.css"));
        let mut routes = pages::routes();
        routes.extend(account_page::routes());
        routes.extend(services::routes());
        routes.push(style);
        if !settings.prefix.is_empty() {
            for route in &mut routes {
                // A program adds its routes once, so the leak is bounded.
                route.path = settings.path(route.path).leak();
            }
        }
        self.directory = Some(Arc::new(AccountDirectory::new(settings)));
        routes
    }

    fn needs_sessions(&self, _outline: &Outline<'_>) -> bool {
        self.are_some()
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        definition.running.push(Arc::new(RunningAccounts(self.directory.clone())));
        let Some(directory) = &self.directory else { return Ok(()) };
        definition.states.share(Arc::clone(directory));
        self.sessions = definition.states.find_shared::<SessionStore>();
        for path in SECRET {
            definition.secret_paths.push(directory.settings.path(path).into());
        }
        definition.names = NameComparison::Folded;
        for page in OPEN {
            definition.open_paths.push(directory.settings.path(page).into());
        }
        Ok(())
    }

    fn declare(&self, options: Options) -> Options {
        if self.directory.is_none() {
            return options;
        }
        audit::declare(options).table::<AccountRow>()
    }

    fn start(&mut self, start: &Start<'_>) -> Result<(), String> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let (Some(store), Some(sessions)) = (start.store(), self.sessions.take()) else {
            return Err("accounts need the store and sessions, which are missing".to_owned());
        };
        let trusted = TrustedHosts::of(start.configuration);
        let development = start.configuration.development.unwrap_or(cfg!(debug_assertions));
        if !development {
            warn(&directory.settings, trusted != TrustedHosts::None);
        }
        let shared = Arc::downgrade(start.shared);
        directory.open(store, sessions, shared, trusted, &self.choices.declared)
    }
}

/// The paths that stay reachable for visitors, whatever the rights are.
const OPEN: [&str; 14] = [
    "/sign-up",
    "/log-in",
    "/log-out",
    "/forgot-password",
    "/reset-password/{link}",
    "/confirm-email/{link}",
    "/accounts/sign-up",
    "/accounts/log-in",
    "/accounts/log-out",
    "/accounts/forgot-password",
    "/accounts/reset-password",
    "/accounts/confirm-email",
    STYLE,
    "/account",
];

/// The paths with a link of a mail, or with an invitation.
const SECRET: [&str; 3] =
    ["/reset-password/{link}", "/confirm-email/{link}", "/sign-up?invitation"];

fn warn(settings: &AccountSettings, trusts_host: bool) {
    if settings.mail.is_none() {
        log::warn(format_args!(
            "accounts cannot send mails, so nobody can set a forgotten password: add `.mail(..)` to `Accounts`"
        ));
    } else if settings.address.is_none() && !trusts_host {
        log::warn(format_args!(
            "accounts send no mails, because any client could choose the host of their links: add `.address(\"https://example.org\")` to `Accounts`, or set the key `hosts`"
        ));
    }
}
