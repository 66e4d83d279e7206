//! The measured pages, and the rows that they show.

use std::fs;

use anyhow::Result;
use serde_json::{Value, json};

use super::servers::ScriptServer;
use crate::tools::Workspace;

/// A page that all servers have.
pub(super) struct ScriptPage {
    pub(super) name: &'static str,
    /// The path below `/pages/`.
    path: &'static str,
    query: &'static str,
}

pub(super) const PAGES: [ScriptPage; 3] = [
    ScriptPage { name: "hello", path: "", query: "name=TLUG" },
    ScriptPage { name: "rows20", path: "rows20", query: "" },
    ScriptPage { name: "rows50", path: "rows50", query: "" },
];

/// Rows of each table. A page shows the newest rows.
const ROWS: u32 = 200;
/// Names with characters that a page escapes, and without.
const AUTHORS: [&str; 4] = ["Ada", "Tom & Jo", "Grace", "\"Bob\""];

impl ScriptPage {
    /// The path and query of the page on a server.
    pub(super) fn path(&self, server: ScriptServer) -> String {
        let Self { name, path, query } = self;
        let mark = if query.is_empty() { "" } else { "?" };
        match server {
            // The configuration of nginx has one path for PHP.
            ScriptServer::Php => format!("/hello?page={name}&{query}"),
            _ => format!("/pages/{path}{mark}{query}"),
        }
    }
}

/// The rows of the pages, newest first.
pub(super) fn entries() -> Vec<Value> {
    let entry = |number: u32| {
        let author = AUTHORS[number as usize % AUTHORS.len()];
        json!({ "number": number, "body": "A & B", "author": author })
    };
    (1..=ROWS).rev().map(entry).collect()
}

/// The longer rows of the last page, newest first.
pub(super) fn messages() -> Vec<Value> {
    let message = |number: u32| {
        let author = AUTHORS[number as usize % AUTHORS.len()];
        let at = format!("2026-11-25T{:02}:{:02}:07.125Z", number / 60, number % 60);
        let body = format!(
            "Number {number}: is it true that 3 < 4 & 5 > 4, as a text of a quite usual length says?"
        );
        json!({ "at": at, "body": body, "author": author })
    };
    (1..=ROWS).rev().map(message).collect()
}

/// The script for live pages, which `bine serve` adds to the head of a page. The peers write it
/// too, so that all pages have the same bytes.
pub(super) fn head(page: &str) -> &str {
    let start = page.find("<script");
    let end = page.find("</head>");
    // A script in the body does not count.
    let within = start.zip(end).filter(|(start, end)| start < end);
    within.and_then(|(start, end)| page.get(start..end)).unwrap_or_default()
}

/// Writes the rows for the servers that have them as an array in memory.
pub(super) fn write_rows(workspace: &Workspace, head: &str) -> Result<()> {
    let rows = json!({ "entries": entries(), "messages": messages(), "head": head });
    fs::write(workspace.work.join("rows.json"), rows.to_string())?;
    Ok(fs::write(workspace.work.join("rows.php"), format!("<?php return {};\n", php(&rows)))?)
}

/// A value as a constant of PHP.
fn php(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            format!("[{}]", list.iter().map(php).collect::<Vec<_>>().join(","))
        }
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("'{key}'=>{}", php(value)));
            format!("[{}]", entries.collect::<Vec<_>>().join(","))
        }
        Value::String(text) => {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_script_in_the_head() {
        let page = "<head><title>a</title><script src=\"/b\"></script></head><body></body>";
        assert_eq!(head(page), "<script src=\"/b\"></script>");
        assert_eq!(head("<head></head><body><script></script></body>"), "");
    }

    #[test]
    fn writes_constants_of_php() {
        let value = json!({ "a": [1, "it's \\", null, true] });
        assert_eq!(php(&value), "['a'=>[1,'it\\'s \\\\',null,true]]");
    }
}
