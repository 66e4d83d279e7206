//! The list of a program's routes: each path with its handler, arguments and access rule.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::methods::Methods;
use crate::route::{Route, RouteKind};
use crate::service::Rule;

/// One line of the list.
#[derive(Debug)]
pub(crate) struct Listed {
    methods: Vec<&'static str>,
    path: String,
    kind: &'static str,
    name: String,
    arguments: Vec<(&'static str, &'static str)>,
    /// The access rule.
    rule: String,
    /// Further properties, such as `safe`.
    marks: Vec<&'static str>,
}

impl Listed {
    pub(crate) fn route(route: &Route) -> Self {
        let info = route.info;
        let kind = match info.kind {
            RouteKind::Page => "page",
            RouteKind::Service => "service",
            RouteKind::Action => "action",
            RouteKind::Asset => "asset",
        };
        // Services and actions check the origin themselves.
        let is_open = info.kind == RouteKind::Page && route.from_anywhere;
        let usual = if route.needs.user { Rule::USERS } else { Rule::ANYONE }.access();
        let rule = info.rule.unwrap_or(usual);
        let marks = [(info.is_safe, "safe"), (info.is_once, "once"), (is_open, "from anywhere")];
        Self {
            arguments: info.arguments.to_vec(),
            rule: rule.name.to_owned(),
            marks: marks.iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| *mark).collect(),
            ..Self::new(route.methods, route.path, kind, route.name)
        }
    }

    /// The files below a folder, of the site with these hosts; an empty string means all hosts.
    pub(crate) fn files(hosts: &str, folder: &Path) -> Self {
        let name = folder.display().to_string();
        Self::new(Methods::GET, &format!("{hosts}/"), "files", &name)
    }

    /// A line without arguments and marks, for anyone.
    pub(crate) fn new(methods: Methods, path: &str, kind: &'static str, name: &str) -> Self {
        let (path, name) = (path.to_owned(), name.to_owned());
        let (methods, arguments) = (methods.names(), Vec::new());
        let (rule, marks) = (Rule::ANYONE.name().to_owned(), Vec::new());
        Self { methods, path, kind, name, arguments, rule, marks }
    }

    /// Sets the access rule.
    pub(crate) fn rule(self, rule: String) -> Self {
        Self { rule, ..self }
    }

    /// The path or the pattern.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Adds a further rule that applies.
    pub(crate) fn add_rule(&mut self, rule: &str) {
        self.rule = format!("{}; {rule}", self.rule);
    }

    fn cells(&self) -> [String; 7] {
        let arguments = self.arguments.iter().map(|(name, kind)| format!("{name}: {kind}"));
        [
            self.methods.join("|"),
            self.path.clone(),
            self.kind.to_owned(),
            self.name.clone(),
            arguments.collect::<Vec<_>>().join(", "),
            self.rule.clone(),
            self.marks.join(", "),
        ]
    }

    fn json(&self) -> Value {
        let Self { methods, path, kind, name, arguments, rule, marks } = self;
        let arguments = arguments.iter().map(|(name, kind)| json!({ "name": name, "type": kind }));
        json!({
            "methods": methods, "path": path, "kind": kind, "name": name,
            "arguments": arguments.collect::<Vec<_>>(), "for": rule, "marks": marks,
        })
    }
}

/// Formats the list as a table, sorted by path.
pub(crate) fn table(mut listed: Vec<Listed>) -> String {
    listed.sort_by(|one, other| one.path.cmp(&other.path));
    let head = ["METHOD", "PATH", "KIND", "NAME", "TAKES", "FOR", "MARKS"].map(str::to_owned);
    let rows: Vec<_> = [head].into_iter().chain(listed.iter().map(Listed::cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 7] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Formats the list as JSON.
pub(crate) fn json(mut listed: Vec<Listed>) -> String {
    listed.sort_by(|one, other| one.path.cmp(&other.path));
    let each = listed.iter().map(Listed::json).collect();
    format!("{:#}\n", Value::Array(each))
}
