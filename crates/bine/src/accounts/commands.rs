//! The commands of the control socket that `bine user` sends: they create, list and remove accounts
//! and set passwords. The user is `console` in the audit log.

use std::fmt::Write as _;
use std::sync::Arc;

use super::account_name::{check_email, check_name};
use super::account_row::AccountRow;
use super::directory::AccountDirectory;
use super::sign_up::invitation;
use crate::audit;
use crate::error::Error;
use crate::prometheus::PrometheusText;
use crate::store::{Time, Transaction};
use crate::subsystem::Running;
use crate::text::Text;
use crate::user_name::name_key;

/// The hooks of accounts while the program runs.
pub(super) struct RunningAccounts(pub(super) Option<Arc<AccountDirectory>>);

const ACTOR: &str = "console";
const ADD: &str = "bine user add NAME [--email E], with the password as the last word";

impl Running for RunningAccounts {
    fn command(&self, words: &[String]) -> Option<Result<String, String>> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ["user", verb, rest @ ..] = &words[..] else { return None };
        let run: fn(&Arc<AccountDirectory>, &[&str]) -> Result<String, String> = match *verb {
            "add" => add,
            "list" => list,
            "password" => set_password,
            "remove" => remove,
            "block" => |accounts, rest| block(accounts, rest, true),
            "unblock" => |accounts, rest| block(accounts, rest, false),
            "hash" => hash,
            "invite" => invite,
            _ => return None,
        };
        Some(match &self.0 {
            Some(directory) => run(directory, rest),
            None => Err("this server has no accounts: add `.accounts(..)` to the program, or set `accounts = true`".to_owned()),
        })
    }

    fn find_user(&self, name: &str) -> Option<Text> {
        let row = AccountRow::find(&self.0.as_ref()?.now(), name)?;
        Some(row.name)
    }

    fn write_metrics(&self, text: &mut PrometheusText) {
        if let Some(directory) = &self.0 {
            directory.write_metrics(text);
        }
    }

    fn stop(&self) {
        if let Some(directory) = &self.0 {
            directory.close();
        }
    }
}

fn add(accounts: &Arc<AccountDirectory>, words: &[&str]) -> Result<String, String> {
    let (name, email, password) = match words {
        [name, password] => (*name, None, *password),
        [name, "--email", email, password] => (*name, Some(*email), *password),
        _ => return Err(format!("write {ADD}")),
    };
    let name = check_name(name).map_err(|reason| format!("the name {reason}"))?;
    let email = email.map(check_email).transpose();
    let email = email.map_err(|reason| format!("the e-mail address {reason}"))?;
    check(accounts, password, &name, email.as_deref())?;
    let mut row = AccountRow::new(&name, accounts.pool().hash_here(password), Time::now());
    // The operator vouches for the address.
    row.set_email(email);
    commit(accounts, move |change| {
        if AccountRow::find(change, &row.name).is_some() {
            return Err(Error::conflict(format!("there is a user {} already", row.name)));
        }
        change.insert(row.clone())?;
        audit::record(change, ACTOR, "account creation", &row.name, "")?;
        Ok(())
    })?;
    Ok(format!("added {name}\n"))
}

fn list(accounts: &Arc<AccountDirectory>, words: &[&str]) -> Result<String, String> {
    if !words.is_empty() {
        return Err("`bine user list` has no arguments".to_owned());
    }
    let (mut text, mut listed) = (String::new(), 0);
    let now = accounts.now();
    for row in now.all::<AccountRow>() {
        // The answer of a control socket is limited; a list of more users is for a program.
        if text.len() > MAX_LIST {
            break;
        }
        listed += 1;
        let marks = [(row.is_blocked, " blocked"), (row.is_declared, " declared")];
        let marks: String =
            marks.iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| *mark).collect();
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{}\t{}{marks}", row.name, row.email.as_deref().unwrap_or("-"));
    }
    let rest = now.count::<AccountRow>() - listed;
    if rest > 0 {
        let _ = writeln!(text, "and {rest} more");
    }
    Ok(text)
}

/// The bytes after which a list of users ends.
const MAX_LIST: usize = 60_000;

fn set_password(accounts: &Arc<AccountDirectory>, words: &[&str]) -> Result<String, String> {
    let [name, password] = words else {
        return Err("write bine user password NAME, with the password as the last word".to_owned());
    };
    let row = find(accounts, name)?;
    reject_declared(&row)?;
    check(accounts, password, &row.name, row.email.as_deref())?;
    let (id, hash) = (row.id, Text::from(accounts.pool().hash_here(password)));
    let directory = Arc::clone(accounts);
    commit(accounts, move |change| {
        let mut row: AccountRow = change.get(id).ok_or_else(gone)?;
        (row.hash, row.password_changed) = (hash.clone(), Time::now());
        change.replace(&row)?;
        directory.end_logins(change, &row.name)?;
        audit::record(change, ACTOR, "password change", &row.name, "")?;
        Ok(())
    })?;
    Ok(format!(
        "changed the password of {}; all sessions and API tokens of this user have ended\n",
        row.name
    ))
}

fn remove(accounts: &Arc<AccountDirectory>, words: &[&str]) -> Result<String, String> {
    let [name] = words else { return Err("write bine user remove NAME".to_owned()) };
    let row = find(accounts, name)?;
    reject_declared(&row)?;
    let (directory, name) = (Arc::clone(accounts), row.name.clone());
    commit(accounts, move |change| {
        directory.remove(change, &row)?;
        audit::record(change, ACTOR, "account removal", &row.name, "")?;
        Ok(())
    })?;
    Ok(format!("removed {name}\n"))
}

fn block(
    accounts: &Arc<AccountDirectory>,
    words: &[&str],
    is_blocked: bool,
) -> Result<String, String> {
    let verb = if is_blocked { "block" } else { "unblock" };
    let [name] = words else { return Err(format!("write bine user {verb} NAME")) };
    let row = find(accounts, name)?;
    let (id, directory) = (row.id, Arc::clone(accounts));
    commit(accounts, move |change| {
        let mut row: AccountRow = change.get(id).ok_or_else(gone)?;
        row.is_blocked = is_blocked;
        change.replace(&row)?;
        if is_blocked {
            directory.end_logins(change, &row.name)?;
        }
        let action = if is_blocked { "account block" } else { "account unblock" };
        audit::record(change, ACTOR, action, &row.name, "")?;
        Ok(())
    })?;
    Ok(format!("{verb}ed {}\n", row.name))
}

fn hash(accounts: &Arc<AccountDirectory>, words: &[&str]) -> Result<String, String> {
    let [password] = words else {
        return Err("write bine user hash, with the password as the last word".to_owned());
    };
    check(accounts, password, "", None)?;
    Ok(format!("{}\n", accounts.pool().hash_here(password)))
}

fn invite(accounts: &Arc<AccountDirectory>, words: &[&str]) -> Result<String, String> {
    if !words.is_empty() {
        return Err("`bine user invite` has no arguments".to_owned());
    }
    let keys = accounts.keys().ok_or("the server is starting")?;
    let text = invitation(keys, Time::now().unix());
    let base = accounts.settings.address.as_deref().unwrap_or_default();
    Ok(format!("{base}{}\n", accounts.settings.path(&format!("/sign-up?invitation={text}"))))
}

fn find(accounts: &AccountDirectory, name: &str) -> Result<AccountRow, String> {
    let row = AccountRow::find(&accounts.now(), &name_key(name));
    row.ok_or_else(|| format!("there is no user {name}"))
}

fn check(
    accounts: &AccountDirectory,
    password: &str,
    name: &str,
    email: Option<&str>,
) -> Result<(), String> {
    let checked = accounts.check_password(password, name, email, None);
    checked.map_err(|reason| format!("the password {reason}"))
}

fn reject_declared(row: &AccountRow) -> Result<(), String> {
    if row.is_declared {
        return Err(format!("the configuration declares {}: change it there", row.name));
    }
    Ok(())
}

fn commit(
    accounts: &AccountDirectory,
    action: impl FnMut(&mut Transaction) -> Result<(), Error>,
) -> Result<(), String> {
    accounts.store().change(action).wait().map_err(|error| told(&error))
}

fn gone() -> Error {
    Error::not_found("the user was removed meanwhile")
}

fn told(error: &Error) -> String {
    error.message().map_or_else(|| format!("{error:?}"), str::to_owned)
}
