//! Accounts: visitors sign up, log in, and set a forgotten password; only users see the minutes.
//!
//! Run `cargo run --example accounts -- --development on`, then open <http://127.0.0.1:8080/>. The
//! links of mails are in the log.

use bine::prelude::*;
use bine::{Account, Accounts};

#[page("/")]
async fn home(user: Option<User>) -> impl Respond {
    html! {
        <h1>The garden club</h1>
        {match user {
            Some(user) => { <p>Hello {user}! <a href="/minutes">Minutes</a> <a href="/account">Your account</a></p> }
            None => { <p><a href="/log-in">Log in</a> <a href="/sign-up">Sign up</a></p> }
        }}
    }
    .with_title("The garden club")
}

#[page("/minutes")]
async fn minutes(account: Account) -> impl Respond {
    let news = account.preference("news").unwrap_or(false);
    html! {
        <h1>Minutes</h1>
        <p>For {account.name().clone()}: hops grow well.{if news { " More by mail." }}</p>
    }
    .with_title("Minutes")
}

fn layout(content: PageContent<'_>) -> impl Page {
    html! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <title>{content.title()}</title>
                <meta name="viewport" content="width=device-width, initial-scale=1">
                <meta name="color-scheme" content="light dark">
            </head>
            <body>{content}</body>
        </html>
    }
}

fn main() -> Exit {
    let accounts = Accounts::new().switch("news", "Send me news");
    App::new().accounts(accounts).layout(layout).page(home).page(minutes).run()
}
