//! The rules in the list of routes.

use super::rights_table::RightsTable;
use super::who::Right;
use crate::listing::Listed;
use crate::methods::Methods;

/// Adds the deciding rule to each route, and a line for each pattern.
pub(super) fn add_rules(table: &RightsTable, listed: &mut Vec<Listed>) {
    for one in listed.iter_mut() {
        let found = table.decide_path(one.path(), Right::Read, table.client(None));
        if let Some(entry) = found.entry {
            one.add_rule(&format!("rule {}", entry.pattern()));
        }
    }
    for (rule, source) in table.rules() {
        let methods = if rule.right == Right::Read { Methods::GET } else { Methods::ALL };
        let pattern = rule.pattern.as_str();
        let line = Listed::new(methods, pattern, "rule", source);
        listed.push(line.rule(format!("{} {}", rule.right, rule.who)));
    }
}
