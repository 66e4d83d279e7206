//! The command `bine user token NAME`, as the control socket delivers it.

use super::token_store::TokenStore;
use super::{CreatedApiToken, NewApiToken, create};
use crate::error::Error;
use crate::problem::ArgumentError;
use crate::store::Transaction;
use crate::subsystem::Shared;
use crate::text::Text;
use crate::user_name::UserName;

const USAGE: &str = "use `bine user token NAME LABEL [--read-only] [--days DAYS] [--path PATH]...`";

/// Runs `user token NAME LABEL ..`. `None`: it is a different command.
pub(super) fn run(
    words: &[String],
    tokens: &TokenStore,
    shared: Option<&Shared>,
) -> Option<Result<String, String>> {
    is_command(words).then(|| add(&words[2..], tokens, shared))
}

/// Whether the words begin with `user token`.
pub(super) fn is_command(words: &[String]) -> bool {
    matches!(words, [user, token, ..] if user == "user" && token == "token")
}

/// The message of an error for an operator: the faulty argument and its fault.
fn message_of(error: &Error) -> String {
    let of_argument = |wrong: &ArgumentError| format!("{}: {}", wrong.name, wrong.detail);
    match error.arguments() {
        [] => error.message().unwrap_or("the store cannot write at the moment").to_owned(),
        wrong => wrong.iter().map(of_argument).collect::<Vec<_>>().join("; "),
    }
}

fn add(words: &[String], tokens: &TokenStore, shared: Option<&Shared>) -> Result<String, String> {
    let [name, label, options @ ..] = words else { return Err(USAGE.to_owned()) };
    let user = UserName::parse(name).map_err(|bad| bad.to_string())?;
    let mut wanted = NewApiToken::new(label.as_str());
    let mut paths = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut value = || options.next().ok_or_else(|| format!("{option} needs a value; {USAGE}"));
        match option.as_str() {
            "--read-only" => wanted = wanted.read_only(),
            "--path" => paths.push(value()?.clone()),
            "--days" => {
                let text = value()?;
                let days = text.parse().map_err(|_| format!("--days {text:?} is no number"))?;
                wanted = wanted.expires_in_days(days);
            }
            other => return Err(format!("unknown option {other:?}; {USAGE}")),
        }
    }
    let wanted = wanted.paths(paths);
    let store = tokens.opened().ok_or("the tables are not open")?;
    let user = shared.map_or_else(|| Text::from(user.as_str()), |shared| shared.user_named(&user));
    let created = store
        .change(move |change: &mut Transaction| create(change, &user, &wanted, "console"))
        .wait();
    let CreatedApiToken { secret, .. } = created.map_err(|error| message_of(&error))?;
    Ok(format!("{secret}\n"))
}
