//! Signs an access token for followers and publishers, without a server.

use std::ffi::OsString;
use std::fs;
use std::time::{Duration, SystemTime};

use bine::Exit;
use bine::channels::{Grant, Pattern};

use super::arguments::{ChannelArguments, parse_duration};
use super::print_text;

const USAGE: &str = "\
Usage: bine channel token SUBJECT --key FILE [OPTION]...

Signs a token (a JSON Web Token with HS256) and prints it. A server that has the same secret, by
`channels-key = FILE` or in its program, grants the rights in the token to clients that present it,
until it expires.

  --key FILE       secret of at least 32 bytes: openssl rand -hex 32 > FILE
  --follow NAME    channel that may be followed, repeatable
  --publish NAME   channel that may be published to, repeatable
  --manage NAME    channel that may be created, renewed, closed and deleted, repeatable
  --follow-pattern PATTERN, --publish-pattern PATTERN, --manage-pattern PATTERN
                   the same for all channels of a pattern: news/*, chat/{room}
  --ttl TIME       time until it expires: 90s, 15m, 2h, 7d; default an hour

  bine channel token my-site --key secret --publish-pattern '*' --manage-pattern '*' --ttl 365d
  bine channel token ann --key secret --follow inbox/ann --publish-pattern 'chat/{room}'";
const OPTIONS: [&str; 8] = [
    "--key=",
    "--follow=",
    "--publish=",
    "--manage=",
    "--follow-pattern=",
    "--publish-pattern=",
    "--manage-pattern=",
    "--ttl=",
];
const DEFAULT_TTL: Duration = Duration::from_hours(1);

/// Runs `bine channel token`.
pub(super) fn run(arguments: &[OsString]) -> Exit {
    let wrong = |message: String| Exit::usage(format!("bine: {message}\n{USAGE}"));
    let arguments = match ChannelArguments::read(arguments, &OPTIONS) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return print_text(USAGE),
        Err(message) => return wrong(message),
    };
    let ([subject], Some(key)) = (&arguments.positional[..], arguments.value("--key=")) else {
        return Exit::usage(USAGE);
    };
    let ttl = match arguments.value("--ttl=").map(parse_duration).transpose() {
        Ok(ttl) => ttl.unwrap_or(DEFAULT_TTL),
        Err(message) => return wrong(message),
    };
    let grant = match grant_from(subject, &arguments) {
        Ok(grant) => grant,
        Err(message) => return wrong(message),
    };
    let Some(end) = SystemTime::now().checked_add(ttl) else {
        return wrong("--ttl is too long".to_owned());
    };
    let secret = match fs::read(key) {
        Ok(secret) => secret,
        Err(error) => return Exit::failure(format!("{key}: {error}")),
    };
    match grant.until(end).token(secret.trim_ascii_end()) {
        Ok(token) => print_text(&token),
        Err(message) => Exit::failure(message),
    }
}

/// Returns the rights that the options grant to a subject.
fn grant_from(subject: &str, arguments: &ChannelArguments) -> Result<Grant, String> {
    let patterns = |option| {
        let parsed = arguments.values(option).map(Pattern::parse).collect::<Result<Vec<_>, _>>();
        parsed.map_err(|bad| bad.to_string())
    };
    let mut grant = Grant::to(subject);
    grant = arguments.values("--follow=").fold(grant, Grant::follow);
    grant = arguments.values("--publish=").fold(grant, Grant::publish);
    grant = arguments.values("--manage=").fold(grant, Grant::manage);
    grant = patterns("--follow-pattern=")?.into_iter().fold(grant, Grant::follow);
    grant = patterns("--publish-pattern=")?.into_iter().fold(grant, Grant::publish);
    Ok(patterns("--manage-pattern=")?.into_iter().fold(grant, Grant::manage))
}
