//! The configuration key of the reverse proxy.

use super::rule::ProxyRule;
use crate::configuration::{Configuration, Key, KeyGroup, Kind};

/// The rules of the configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct ProxyChoices(pub(super) Vec<ProxyRule>);

inventory::submit! {
    KeyGroup { keys: KEYS, after: "pages", rank: 10, adds_content: |_| false }
}

static KEYS: &[Key] = &[Key::server(
    "proxy",
    "RULE",
    &[],
    "let other servers answer the requests for a path, repeatable: 'path=/ to=http://127.0.0.1:9000'; in a file a table [[proxy]]",
    |c: &mut Configuration, v| {
        let rule = ProxyRule::parse(v)?;
        let rules = &mut c.choice_mut::<ProxyChoices>().0;
        if rules.iter().any(|other| other.overlaps(&rule)) {
            return Err(format!(
                "two proxies have the path {}; change one, or give them `hosts`",
                rule.path
            ));
        }
        rules.push(rule);
        Ok(())
    },
)
.kind(Kind::Tables {
    paths: &["origin-authority", "origin-certificate", "origin-certificate-key"],
})];
