//! The configuration keys of rights.

use super::rights_table::{Membership, RuleSource};
use super::rule::RightRule;
use crate::configuration::{Configuration, Key, KeyGroup, Kind};

/// The rules and memberships of the configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct RightChoices(pub(super) RuleSource);

inventory::submit! {
    KeyGroup {
        keys: KEYS,
        after: "sync",
        rank: 25,
        adds_content: |configuration| !configuration.choice::<RightChoices>().0.is_empty(),
    }
}

static KEYS: &[Key] = &[
    Key::server(
        "rule",
        "RULE",
        &[],
        "who may use a path or a channel, repeatable: '/admin/* write administrators', '/wiki/* read anonymous', '/wiki/* write group:editors, ann', 'news/* follow users'",
        |c, v| {
            c.choice_mut::<RightChoices>().0.rules.extend(RightRule::parse_line(v)?);
            Ok(())
        },
    )
    .kind(Kind::Lines),
    Key::server(
        "group",
        "GROUP: USER, USER",
        &[],
        "a group and its members, repeatable: 'editors: ann, ben'",
        |c, v| {
            c.choice_mut::<RightChoices>().0.members.extend(Membership::parse_line(v)?);
            Ok(())
        },
    )
    .kind(Kind::Lines),
];

impl RightChoices {
    /// The rules and memberships of a configuration.
    pub(super) fn of(configuration: &Configuration) -> RuleSource {
        configuration.choice::<Self>().0
    }

    /// The names of the files that a folder's path means, on any site.
    pub(super) fn index_names(configuration: &Configuration) -> Vec<String> {
        let others = configuration.sites.iter().map(|(_, site)| site);
        let sites = others.chain([&configuration.site]);
        let mut names: Vec<String> = sites.flat_map(|site| site.index.iter().cloned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
