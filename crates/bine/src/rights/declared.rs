//! The rules and groups that another subsystem declares, in the words of the configuration.

use super::rights_table::{Membership, RuleSource};
use super::rule::RightRule;
use super::who::{Right, Who};
use crate::access_guard::{DeclaredGroup, DeclaredRule, DeclaredRules};

/// Checks a rule.
///
/// # Errors
///
/// A part is invalid; the message names the correction.
#[cfg(feature = "script")]
pub(crate) fn check_rule(rule: &DeclaredRule) -> Result<(), String> {
    rules_of(rule).map(drop)
}

/// Checks a group and the names of its members.
///
/// # Errors
///
/// A name is invalid or reserved; the message names the correction.
#[cfg(feature = "script")]
pub(crate) fn check_group(group: &DeclaredGroup) -> Result<(), String> {
    members_of(group).map(drop)
}

/// Reads all rules and groups.
///
/// # Errors
///
/// A rule or a group is invalid, or there are too many.
pub(super) fn read(declared: &DeclaredRules) -> Result<RuleSource, String> {
    let mut source = RuleSource::default();
    for rule in &declared.rules {
        source.rules.extend(rules_of(rule)?);
    }
    for group in &declared.groups {
        source.members.extend(members_of(group)?);
    }
    source.check()?;
    Ok(source)
}

fn rules_of(rule: &DeclaredRule) -> Result<Vec<RightRule>, String> {
    let DeclaredRule { pattern, right, who } = rule;
    if who.is_empty() {
        return Err(format!(
            "the rule for {pattern} names nobody: add who has the right, such as `users` or `group:editors`"
        ));
    }
    let right = Right::parse(right)?;
    who.iter().map(|who| RightRule::new(pattern, right, Who::parse(who)?)).collect()
}

fn members_of(group: &DeclaredGroup) -> Result<Vec<Membership>, String> {
    super::who::check_group(&group.name)?;
    group.members.iter().map(|user| Membership::new(user, &group.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str, right: &str, who: &[&str]) -> DeclaredRule {
        let who = who.iter().map(ToString::to_string).collect();
        DeclaredRule { pattern: pattern.to_owned(), right: right.to_owned(), who }
    }

    #[test]
    fn reads_the_rules_of_lines_of_the_configuration() {
        let declared = DeclaredRules {
            source: "a",
            rules: vec![rule("/wiki/*", "write", &["group:editors", "Ann Smith", "users"])],
            groups: vec![DeclaredGroup {
                name: "editors".to_owned(),
                members: vec!["ann".to_owned(), "ben".to_owned()],
            }],
        };
        let rules = RightRule::parse_line("/wiki/* write group:editors, Ann Smith, users").unwrap();
        let members = Membership::parse_line("editors: ann, ben").unwrap();
        assert_eq!(read(&declared), Ok(RuleSource { rules, members }));
    }

    #[test]
    fn rejects_what_the_configuration_rejects() {
        for (pattern, right, who, expected) in [
            ("/a*b", "read", "ann", "the whole last segment"),
            ("/a", "see", "ann", "a path has read and write"),
            ("/a", "follow", "ann", "a right for channels"),
            ("/a", "read", "console", "reserved"),
            ("/a", "read", "group:a:b", "no name of a group"),
        ] {
            let declared = DeclaredRules {
                rules: vec![rule(pattern, right, &[who])],
                ..DeclaredRules::default()
            };
            let error = read(&declared).unwrap_err();
            assert!(error.contains(expected), "{pattern} {right} {who}: {error}");
            let line = RightRule::parse_line(&format!("{pattern} {right} {who}")).unwrap_err();
            assert_eq!(error, line);
        }
        let nobody = DeclaredRules { rules: vec![rule("/a", "read", &[])], ..Default::default() };
        assert!(read(&nobody).unwrap_err().contains("names nobody"));
        let group = DeclaredGroup { name: "users".to_owned(), members: Vec::new() };
        let group = DeclaredRules { groups: vec![group], ..Default::default() };
        assert!(read(&group).unwrap_err().contains("everyone who has logged in"));
    }
}
