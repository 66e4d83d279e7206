//! A kanban board for teams: accounts, rights per board, live boards, comments, attachments, and a
//! JSON API with tokens. Written from the guide.
//!
//! Run `cargo run --example kanban`, then open <http://127.0.0.1:8080/> and sign up. To make a user
//! an administrator, run `bine user group NAME +administrators`: administrators read all boards and
//! change their people, and write where they are members. In development, the data browser
//! at `/_bine/data` shows all rows, and who changed them there.
//!
//! A script creates a card with a token from `/account/tokens`:
//!
//! ```text
//! curl -H "Authorization: Bearer $TOKEN" -d lane=$LANE -d title=Brew http://127.0.0.1:8080/api/cards/add
//! ```
//!
//! | environment | meaning | default |
//! |---|---|---|
//! | `KANBAN_FILES` | the folder of attachments | `attachments` |
//! | `KANBAN_ADDRESS` | scheme and host of links in mails | that of the request, if it is safe |
//! | `KANBAN_HASHING` | KiB of memory of a password hash; less than the default is for tests | 19 456 |

use std::path::PathBuf;
use std::{env, fs};

use bine::prelude::*;
use bine::{AccessRules, Accounts, HashingCost, Mail, Rule, Who};

mod api;
mod boards;
mod cards;
mod tables;

use tables::{Attachment, Board, Card, Comment, Lane};

/// The folder of attachments. `App::files` must not serve it: see the chapter on files.
struct Files(PathBuf);

/// Prints a mail. A real site hands it to its mail server.
async fn send(mail: Mail) -> Result<(), Error> {
    println!("mail to {}: {} {}", mail.to, mail.subject, mail.link.unwrap_or_default());
    Ok(())
}

fn layout(content: PageContent<'_>, user: Option<User>) -> impl Page {
    let path = content.path();
    let current = move |link: &str| (path == link).then_some("page");
    html! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8">
                <meta name="viewport" content="width=device-width, initial-scale=1">
                <meta name="color-scheme" content="light dark">
                <title>{content.title()}</title>
            </head>
            <body>
                <header class="site">
                    <a class="brand" href="/" aria-current={current("/")}>Kanban</a>
                    <nav aria-label="Site">
                        {match user {
                            Some(user) => {
                                <a href="/account" aria-current={current("/account")}>{user}</a>
                                <a href="/account/tokens" aria-current={current("/account/tokens")}>Tokens</a>
                                <form method="post" action="/log-out"><button class="quiet">Log out</button></form>
                            }
                            None => {
                                <a href="/log-in" aria-current={current("/log-in")}>Log in</a>
                                <a href="/sign-up" aria-current={current("/sign-up")}>Sign up</a>
                            }
                        }}
                    </nav>
                </header>
                <main>{content}</main>
            </body>
        </html>
    }
}

fn accounts() -> Accounts {
    let mut accounts = Accounts::new().mail(send);
    if let Ok(address) = env::var("KANBAN_ADDRESS") {
        accounts = accounts.address(&address);
    }
    if let Some(kib) = env::var("KANBAN_HASHING").ok().and_then(|kib| kib.parse().ok()) {
        accounts = accounts.hashing_cost(HashingCost::new(kib, 1));
    }
    accounts
}

fn app(files: PathBuf) -> App {
    // A board grants the rights at its own path. This rule denies every other path.
    let rules = AccessRules::new()
        .allow("/board/*", Who::Administrators)
        .allow("/boards", Who::Users)
        .allow("/join/*", Who::Users)
        .allow("/api/*", Who::Users);
    App::new()
        .table::<Board>()
        .table::<Lane>()
        .table::<Card>()
        .table::<Comment>()
        .table::<Attachment>()
        .state(Files(files))
        .accounts(accounts())
        .rights(rules)
        .secret_path("/join/{invitation}")
        .api_tokens()
        .default_service_rule(Rule::USERS)
        .layout(layout)
        .asset("/board.js", "text/javascript", include_bytes!("board.js"))
        .page(boards::home)
        .page(boards::create)
        .page(boards::board)
        .page(boards::invitation)
        .page(boards::join)
        .page(boards::change_member)
        .page(cards::card)
        .page(cards::attach)
        .page(cards::attachment)
        .page(cards::detach)
        .service(api::boards)
        .service(api::cards)
        .service(api::add_lane)
        .service(api::remove_lane)
        .service(api::add_card)
        .service(api::edit_card)
        .service(api::move_card)
        .service(api::step_card)
        .service(api::remove_card)
        .service(api::add_comment)
}

fn main() -> Exit {
    let files = PathBuf::from(env::var_os("KANBAN_FILES").unwrap_or_else(|| "attachments".into()));
    if let Err(error) = fs::create_dir_all(&files) {
        return Exit::usage(format!("cannot create the folder {}: {error}", files.display()));
    }
    app(files).run()
}

css_file!("style.css");
