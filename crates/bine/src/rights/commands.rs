//! The commands `bine user group`, `grant`, `revoke`, `rules` and `check`.

use std::fmt::Write as _;

use bine_http::Method;

use super::engine::{RightsEngine, right_of};
use super::rights_table::{Membership, RightsTable};
use super::rows;
use super::rule::RightRule;
use super::who::{ANONYMOUS, CONSOLE, Right, Who, check_user};
use crate::error::Error;
use crate::nearest::nearest;
use crate::store::Transaction;

/// The verbs, each with its arguments.
const VERBS: [(&str, &str); 5] = [
    ("group", "NAME [+GROUP | -GROUP]..."),
    ("grant", "WHO RIGHT PATTERN"),
    ("revoke", "WHO RIGHT PATTERN, or the name of a user for all stored rights and groups"),
    ("rules", "[PATTERN]"),
    ("check", "NAME PATH [METHOD]"),
];

/// Bytes after which a list of rules ends. The control socket limits an answer to 64 KiB.
const MAX_LISTED: usize = 48 << 10;

/// Whether the words are one of the commands.
pub(super) fn is_command(words: &[String]) -> bool {
    let verb = words.get(1).filter(|_| words[0] == "user");
    verb.is_some_and(|verb| VERBS.iter().any(|(own, _)| own == verb))
}

/// Runs a command; `None`: it is not one of these.
pub(super) fn run(engine: &RightsEngine, words: &[String]) -> Option<Result<String, String>> {
    if !is_command(words) {
        return None;
    }
    let arguments: Vec<&str> = words[2..].iter().map(String::as_str).collect();
    Some(match (&*words[1], &arguments[..]) {
        ("group", [user, changes @ ..]) => change_groups(engine, user, changes),
        ("grant", [who, right, pattern]) => grant(engine, who, right, pattern),
        ("revoke", [user]) => forget_user(engine, user),
        ("revoke", [who, right, pattern]) => revoke(engine, who, right, pattern),
        ("rules", []) => Ok(rules(&engine.table(), None)),
        ("rules", [pattern]) => Ok(rules(&engine.table(), Some(pattern))),
        ("check", [user, path]) => check(&engine.table(), user, path, "GET"),
        ("check", [user, path, method]) => check(&engine.table(), user, path, method),
        (verb, _) => Err(usage(verb)),
    })
}

fn usage(verb: &str) -> String {
    let own = VERBS.iter().find(|(own, _)| *own == verb);
    let (_, arguments) = own.copied().unwrap_or_default();
    format!("write: bine user {verb} {arguments}")
}

/// Runs a change of the stored rows.
fn change<T>(
    engine: &RightsEngine,
    action: impl FnMut(&mut Transaction) -> Result<T, Error>,
) -> Result<T, String> {
    let store = engine.store().ok_or_else(|| "the server has not started yet".to_owned())?;
    store.change(action).wait().map_err(|error| match error.message() {
        Some(message) => message.to_owned(),
        None => error.chain().collect::<Vec<_>>().join(": "),
    })
}

/// Changes and lists the groups of a user.
fn change_groups(engine: &RightsEngine, user: &str, changes: &[&str]) -> Result<String, String> {
    check_user(user)?;
    let user = &*engine.names().key(user);
    let mut memberships = Vec::new();
    for change in changes {
        let (is_added, group) = match (change.strip_prefix('+'), change.strip_prefix('-')) {
            (Some(group), _) => (true, group),
            (None, Some(group)) => (false, group),
            (None, None) => {
                return Err(format!(
                    "write +{change} to add {user} to the group, or -{change} to remove"
                ));
            }
        };
        memberships.push((is_added, Membership::new(user, group)?));
    }
    let mut text = String::new();
    for (is_added, member) in &memberships {
        if *is_added && !engine.table().group_names().any(|name| *name == *member.group) {
            note_unknown_group(&engine.table(), &member.group, "is new", &mut text);
        }
    }
    let outcomes = change(engine, |transaction| {
        let each = memberships.iter().map(|(is_added, member)| match is_added {
            true => rows::add_member(transaction, CONSOLE, member),
            false => rows::remove_member(transaction, CONSOLE, member),
        });
        each.collect::<Result<Vec<bool>, Error>>()
    })?;
    let table = engine.table();
    for ((is_added, member), has_changed) in memberships.iter().zip(outcomes) {
        let is_member = table.is_member(user, &member.group);
        if !is_added && is_member {
            let _ = writeln!(
                text,
                "note: the program or the configuration file keeps {user} in {}; change it there",
                member.group
            );
        } else if !has_changed {
            let state = if *is_added { "already" } else { "not" };
            let _ = writeln!(text, "note: {user} was {state} in {}", member.group);
        }
    }
    let groups = table.groups_of(user);
    let listed = if groups.is_empty() { "no groups".to_owned() } else { groups.join(" ") };
    let _ = writeln!(text, "{user}: {listed}");
    Ok(text)
}

/// Adds a note if no member and no rule names the group.
fn note_unknown_group(table: &RightsTable, group: &str, what: &str, text: &mut String) {
    let hint = nearest(table.group_names(), group)
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let _ = writeln!(text, "note: the group `{group}` {what}{hint}");
}

fn rule(engine: &RightsEngine, who: &str, right: &str, pattern: &str) -> Result<RightRule, String> {
    let rule = RightRule::new(pattern, Right::parse(right)?, Who::parse(who)?)?;
    rule.stored(engine.names())
}

fn grant(engine: &RightsEngine, who: &str, right: &str, pattern: &str) -> Result<String, String> {
    let rule = rule(engine, who, right, pattern)?;
    let mut text = String::new();
    if let Who::Group(name) = &rule.who
        && !engine.table().has_members(name)
    {
        note_unknown_group(&engine.table(), name, "has no members", &mut text);
    }
    if change(engine, |transaction| rows::grant(transaction, CONSOLE, &rule))? {
        let _ = writeln!(text, "granted: {rule}");
    } else {
        let _ = writeln!(text, "note: it was granted already: {rule}");
    }
    Ok(text)
}

fn revoke(engine: &RightsEngine, who: &str, right: &str, pattern: &str) -> Result<String, String> {
    let rule = rule(engine, who, right, pattern)?;
    let was_stored = change(engine, |transaction| rows::revoke(transaction, CONSOLE, &rule))?;
    let table = engine.table();
    let other =
        table.rules().into_iter().find(|(own, _)| own.stored(table.names()).as_ref() == Ok(&rule));
    match (was_stored, other) {
        (_, Some((_, source))) => Err(format!(
            "the {source} gives this right too, and it is still in effect: remove it there: {rule}"
        )),
        (true, None) => {
            let mut text = format!("revoked: {rule}\n");
            let has_rules = table
                .rules()
                .iter()
                .any(|(own, _)| own.pattern.segments() == rule.pattern.segments());
            if !has_rules {
                let _ = writeln!(
                    text,
                    "note: {} has no rule any more; a less specific pattern decides, or the path is open (bine user check)",
                    rule.pattern.as_str()
                );
            }
            Ok(text)
        }
        (false, None) => Err(format!("there is no such rule: {rule}; `bine user rules` lists all")),
    }
}

/// Removes all stored rights and groups of a user.
fn forget_user(engine: &RightsEngine, user: &str) -> Result<String, String> {
    check_user(user)?;
    let user = &*engine.names().key(user);
    let count = change(engine, |transaction| Ok(rows::forget_user(transaction, CONSOLE, user)?))?;
    Ok(format!("revoked: {count} stored rights and groups of {user}\n"))
}

fn rules(table: &RightsTable, pattern: Option<&str>) -> String {
    let mut text = String::new();
    let is_shown = |rule: &RightRule| pattern.is_none_or(|own| rule.pattern.as_str() == own);
    let mut rest = table.rules().into_iter().filter(|(rule, _)| is_shown(rule));
    while text.len() < MAX_LISTED
        && let Some((rule, source)) = rest.next()
    {
        let _ = writeln!(text, "{rule}  ({source})");
    }
    match rest.count() {
        0 => {}
        more => {
            let _ = writeln!(text, "and {more} more; name a pattern: bine user rules PATTERN");
        }
    }
    if text.is_empty() {
        text.push_str("no rules: everything is open\n");
    }
    text
}

/// Explains which rule decides about a request of a user.
fn check(table: &RightsTable, user: &str, path: &str, method: &str) -> Result<String, String> {
    if user != ANONYMOUS {
        check_user(user)?;
    }
    let right = match Right::parse(method) {
        Ok(right) => right,
        Err(_) => right_of(method_of(method)?),
    };
    let is_channel = !path.starts_with('/');
    let right = match (is_channel, right) {
        (true, Right::Read) => Right::Follow,
        (true, Right::Write) => Right::Publish,
        (_, right) => right,
    };
    if !is_channel && right.is_for_channels() {
        return Err(format!("`{right}` is a right for channels, and {path} is a path"));
    }
    let (names, user) = (table.names(), Some(user).filter(|user| *user != ANONYMOUS));
    let client = table.client(user);
    let decision = if is_channel {
        table.decide_channel(path, right, client)
    } else {
        table.decide_path(path, right, client)
    };
    let name = user.unwrap_or(ANONYMOUS);
    let (may, what) = (if decision.is_allowed { "may" } else { "may not" }, right.name());
    let mut text = format!("{name} {may} {what} {path}: ");
    let Some(entry) = decision.entry else {
        let why = if is_channel { "the program's own access rules decide" } else { "it is open" };
        let _ = writeln!(text, "no rule matches, so {why}");
        return Ok(text);
    };
    let _ = writeln!(text, "the rules for {} decide", entry.pattern());
    for (rule, source) in table.rules() {
        if rule.pattern.as_str() == entry.pattern() {
            let gives = rule.right == right || (rule.right, right) == (Right::Write, Right::Read);
            let is_own = match &rule.who {
                Who::Anonymous => true,
                Who::Users => user.is_some(),
                Who::Administrators => {
                    user.is_some_and(|user| table.is_member(user, super::who::ADMINISTRATORS))
                }
                Who::Group(group) => user.is_some_and(|user| table.is_member(user, group)),
                Who::User(own) => user.is_some_and(|user| names.key(user) == names.key(own)),
            };
            let mark = if gives && is_own { "*" } else { " " };
            let _ = writeln!(text, "{mark} {} {}  ({source})", rule.right, rule.who);
        }
    }
    if let Some(user) = user {
        let groups = table.groups_of(user);
        let listed = if groups.is_empty() { "no groups".to_owned() } else { groups.join(" ") };
        let _ = writeln!(text, "{user} is in: {listed}");
    }
    Ok(text)
}

fn method_of(name: &str) -> Result<Method, String> {
    Ok(match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "OPTIONS" => Method::Options,
        "QUERY" => Method::Query,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        other => {
            return Err(format!(
                "`{other}` is no method and no right: write GET, POST, read, write, follow, publish or manage"
            ));
        }
    })
}
