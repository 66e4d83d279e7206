//! Decides how a token for somebody who follows or publishes is signed, without a server.

use std::ffi::OsString;
use std::fs;
use std::time::{Duration, SystemTime};

use bine::Exit;
use bine::channels::{Grant, Pattern};

use super::arguments::{Arguments, time};
use super::printed;

const USAGE: &str = "\
Usage: bine channel token SUBJECT --key FILE [OPTION]...

Signs a token (a JSON Web Token by HS256) and prints it. Whoever shows it to a server that has the same
secret, by `channels-key = FILE` or in its program, may do what it says, until it ends.

  --key FILE       the secret, of at least 32 bytes: openssl rand -hex 32 > FILE
  --follow NAME    a channel that may be followed, repeatable
  --publish NAME   a channel that may be published in, repeatable
  --manage NAME    a channel that may be made, renewed, closed and removed, repeatable
  --follow-pattern PATTERN, --publish-pattern PATTERN, --manage-pattern PATTERN
                   the same for all channels of a pattern: news/*, chat/{room}
  --ttl TIME       it ends that long from now: 90s, 15m, 2h, 7d; an hour if nothing is said

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
const USUAL: Duration = Duration::from_hours(1);

/// Runs `bine channel token ..`.
pub(super) fn run(arguments: &[OsString]) -> Exit {
    let wrong = |message: String| Exit::usage(format!("bine: {message}\n{USAGE}"));
    let arguments = match Arguments::read(arguments, &OPTIONS) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return printed(USAGE),
        Err(message) => return wrong(message),
    };
    let ([subject], Some(key)) = (&arguments.words[..], arguments.value("--key=")) else {
        return Exit::usage(USAGE);
    };
    let life = match arguments.value("--ttl=").map(time).transpose() {
        Ok(life) => life.unwrap_or(USUAL),
        Err(message) => return wrong(message),
    };
    let grant = match granted(subject, &arguments) {
        Ok(grant) => grant,
        Err(message) => return wrong(message),
    };
    let Some(end) = SystemTime::now().checked_add(life) else {
        return wrong("--ttl: no clock goes so far".to_owned());
    };
    let secret = match fs::read(key) {
        Ok(secret) => secret,
        Err(error) => return Exit::failed(format!("{key}: {error}")),
    };
    match grant.until(end).token(secret.trim_ascii_end()) {
        Ok(token) => printed(&token),
        Err(message) => Exit::failed(message),
    }
}

/// What the options give to a subject.
fn granted(subject: &str, arguments: &Arguments) -> Result<Grant, String> {
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
