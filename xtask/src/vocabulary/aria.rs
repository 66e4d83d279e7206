//! Writes the ARIA part of the table.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::chosen;
use super::kind::Kind;
use super::table::{Table, quoted, words};

/// Writes the roles and the states.
pub(super) fn write(table: &mut Table, facts: &Value) -> Result<()> {
    let roles = facts["roles"].as_object().context("no roles")?;
    let states_of = |role: &Value, key: &str| -> BTreeSet<String> {
        role[key].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let everywhere = states_of(&facts["roles"]["roletype"], "props");
    let mut written = Vec::new();
    let mut names: Vec<&String> = roles.keys().collect();
    names.sort();
    for name in names {
        let role = &roles[name];
        // Abstract roles classify the rest; no page may use one.
        if role["abstract"] == true {
            continue;
        }
        let all = states_of(role, "props");
        let required = states_of(role, "requiredProps");
        let own = all.difference(&everywhere).map(String::as_str);
        let prohibited: BTreeSet<&str> =
            super::words(&role["prohibitedProps"]).into_iter().collect();
        written.push(format!(
            "Role {{ name: {}, states: {}, required: {}, prohibited: {} }}",
            quoted(name),
            words(own),
            words(required.iter().map(String::as_str)),
            words(prohibited),
        ));
    }
    table.list("ROLES", "Role", "The roles of ARIA that a page may use.", &written);

    let states = facts["states"].as_object().context("no states")?;
    let mut names: Vec<&String> = states.keys().collect();
    names.sort();
    let mut written = Vec::new();
    for name in names {
        let kind = kind(&states[name]).with_context(|| name.clone())?.rust();
        let former = chosen::STATES.iter().find(|(state, _)| state == name);
        written.push(match former {
            Some((_, instead)) => {
                format!("deprecated({}, {kind}, {})", quoted(name), quoted(instead))
            }
            None => format!("attribute({}, {kind})", quoted(name)),
        });
    }
    table.list("STATES", "Attribute", "The states and properties of ARIA.", &written);
    Ok(())
}

/// The values of a state.
fn kind(facts: &Value) -> Result<Kind> {
    let undefined = if facts["allowundefined"] == true { "undefined " } else { "" };
    let listed = || -> String {
        let values = facts["values"].as_array().into_iter().flatten();
        // Some are JavaScript literals.
        let words =
            values.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        words.collect::<Vec<_>>().join(" ")
    };
    Ok(match facts["type"].as_str() {
        Some("id") => Kind::plain("Id"),
        Some("idlist") => Kind::plain("Ids"),
        Some("boolean") => Kind::with("Words", &format!("{undefined}false true")),
        Some("tristate") => Kind::with("Words", "false mixed true undefined"),
        Some("token") => Kind::with("Words", &listed()),
        Some("tokenlist") => Kind::with("WordList", &listed()),
        Some("integer") => Kind::plain("Integer"),
        Some("number") => Kind::plain("Number"),
        Some("string") => Kind::plain("Text"),
        other => bail!("{other:?} is a new type of state"),
    })
}
