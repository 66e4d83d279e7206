//! The command `bine user`: forwards its words to a running server, which changes users and rights.

use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::process::Command;

use bine::Exit;

const USAGE: &str = "\
Usage: bine user rules [PATTERN]                  list the rules, each with its source
       bine user check NAME PATH [METHOD]         explain what a user may do, and which rule decides
       bine user grant WHO RIGHT PATTERN          give a right
       bine user revoke WHO RIGHT PATTERN         take it away
       bine user revoke NAME                      take all stored rights and groups of a user away
       bine user group NAME [+GROUP | -GROUP]...  list and change the groups of a user
       bine user add NAME [--email E] [--group G]... [--password-stdin]
                                                  create an account
       bine user password NAME [--password-stdin] set the password of an account
       bine user list                             list the accounts
       bine user remove NAME                      delete an account
       bine user block NAME | unblock NAME        end all sessions and refuse log-ins; permit them again
       bine user invite                           print an invitation to sign up
       bine user hash [--password-stdin]          print the hash of a password for the key `account`
       bine user token NAME LABEL [--read-only] [--days DAYS] [--path PATH]...
                                                  create an API token and print it

WHO is anonymous, users, administrators, group:NAME or the name of a user. RIGHT is read or write for
a path such as /wiki/*, and follow, publish or manage for channels such as news/*. NAME may be
anonymous in `check`, and METHOD may be a right.

The command needs a running server, which the options --control, --config and --data locate as for
`bine status`. Passwords are read from the terminal or, with --password-stdin, from standard input.

  bine user group ann +administrators
  bine user grant group:editors write '/wiki/*'
  bine user check ann /wiki/start POST";

/// The options that locate the server.
const LOCATORS: [&str; 3] = ["--control", "--config", "--data"];
const PASSWORD_STDIN: &str = "--password-stdin";
/// The verbs that read a password, which they send as the last word.
const WITH_PASSWORD: [&str; 3] = ["add", "password", "hash"];

/// Runs the command with the arguments after `user`.
pub(crate) fn run(arguments: &[OsString]) -> Exit {
    let mut words = Vec::new();
    let mut locators: Vec<OsString> = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(word) = argument.to_str() else {
            return Exit::usage("bine: an argument is not UTF-8 text".to_owned());
        };
        match word.split_once('=').map_or(word, |(name, _)| name) {
            "--help" | "-h" => {
                println!("{USAGE}");
                return Exit::success();
            }
            name if LOCATORS.contains(&name) => {
                locators.push(argument.clone());
                if name == word {
                    locators.extend(rest.next().cloned());
                }
            }
            _ => words.push(word.to_owned()),
        }
    }
    let Some(verb) = words.first().cloned() else { return Exit::usage(USAGE.to_owned()) };
    let groups = match take_groups(&verb, &mut words) {
        Ok(groups) => groups,
        Err(message) => return Exit::usage(message),
    };
    let reads_input = take_flag(&mut words, PASSWORD_STDIN);
    if WITH_PASSWORD.contains(&&*verb) {
        match read_password(reads_input) {
            Ok(password) => words.push(password),
            Err(message) => return Exit::failure(message),
        }
    } else if reads_input {
        return Exit::usage(format!("bine: `bine user {verb}` reads no password\n{USAGE}"));
    }
    let send = |words: Vec<String>| {
        let words: Vec<String> = ["user".to_owned()].into_iter().chain(words).collect();
        // Words are strings, which always have a JSON form.
        let command = serde_json::to_string(&words).unwrap_or_default();
        bine::run_control_command(&command, USAGE, locators.iter().cloned())
    };
    let name = words.get(1).cloned().unwrap_or_default();
    let done = send(words);
    if groups.is_empty() || !done.is_success() {
        return done;
    }
    let changes = groups.iter().map(|group| format!("+{group}"));
    send(["group".to_owned(), name].into_iter().chain(changes).collect())
}

/// Removes the groups of a new account, which are added by a command of their own.
fn take_groups(verb: &str, words: &mut Vec<String>) -> Result<Vec<String>, String> {
    let mut groups = Vec::new();
    while verb == "add"
        && let Some(place) =
            words.iter().position(|word| word == "--group" || word.starts_with("--group="))
    {
        let word = words.remove(place);
        match word.split_once('=') {
            Some((_, group)) => groups.push(group.to_owned()),
            None if place < words.len() => groups.push(words.remove(place)),
            None => return Err(format!("bine: --group needs the name of a group\n{USAGE}")),
        }
    }
    Ok(groups)
}

fn take_flag(words: &mut Vec<String>, flag: &str) -> bool {
    let count = words.len();
    words.retain(|word| word != flag);
    words.len() < count
}

/// Reads a password from standard input, or twice from the terminal without echo.
fn read_password(reads_input: bool) -> Result<String, String> {
    let input = io::stdin();
    if reads_input {
        return read_line().map_err(|error| format!("cannot read the password: {error}"));
    }
    if !input.is_terminal() {
        return Err(format!(
            "standard input is not a terminal; add {PASSWORD_STDIN} to read the password from it"
        ));
    }
    let ask = |prompt: &str| {
        let _silence = Silence::begin()?;
        eprint!("{prompt}: ");
        io::stderr().flush()?;
        let line = read_line();
        eprintln!();
        line
    };
    let failed = |error: io::Error| format!("cannot read the password: {error}");
    let password = ask("Password").map_err(failed)?;
    if ask("Again").map_err(failed)? != password {
        return Err("the two passwords differ; nothing has changed".to_owned());
    }
    Ok(password)
}

/// Reads one line without its end.
fn read_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// The terminal without echo, until this value is dropped.
struct Silence;

impl Silence {
    fn begin() -> io::Result<Self> {
        // The child process shares the terminal as its standard input.
        let status = Command::new("stty").arg("-echo").status()?;
        if status.success() { Ok(Self) } else { Err(io::Error::other("stty -echo failed")) }
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // The terminal may be closed; then its settings need no restoring.
        let _ = Command::new("stty").arg("echo").status();
    }
}
