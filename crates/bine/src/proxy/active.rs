//! The rules in force: which rule a request has, and which of its origins.

use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use bine_server::Incoming;

use super::balancer::{BalancedRequest, OriginCandidate};
use super::origin::ProxyOrigin;
use super::origin_settings::OriginSettings;
use super::rule::{ProxyRule, Sticky};
use crate::sites::without_port;

/// The rules in force, which a reload replaces. All threads share them.
#[derive(Default)]
pub(super) struct ActiveRules {
    rules: RwLock<Arc<[Arc<ActiveRule>]>>,
    /// Whether there are rules, so that a program without a proxy pays one load.
    has_rules: AtomicBool,
}

/// A rule with its origins.
pub(super) struct ActiveRule {
    pub(super) rule: ProxyRule,
    /// The origins in the order of the rule.
    pub(super) origins: Vec<Arc<ProxyOrigin>>,
}

/// The name of the cookie that binds a client to an origin.
pub(super) const COOKIE: &str = "bine_origin";

impl ActiveRules {
    /// Replaces the rules. Origins with the same address and limits keep their connections and their
    /// health; the others end when their last request has ended.
    pub(super) fn replace(&self, rules: Vec<ProxyRule>) {
        let old = self.all();
        let mut kept: Vec<Arc<ProxyOrigin>> =
            old.iter().flat_map(|rule| rule.origins.iter().cloned()).collect();
        let mut active: Vec<_> = rules
            .into_iter()
            .map(|rule| {
                let limits = rule.limits();
                let origin = |OriginSettings { address, .. }: &OriginSettings| {
                    let tls = rule.tls.clone().filter(|_| address.is_tls());
                    let is_same = |one: &Arc<ProxyOrigin>| {
                        one.pool.address() == address && one.limits() == limits && one.tls == tls
                    };
                    match kept.iter().position(is_same) {
                        Some(place) => kept.swap_remove(place),
                        None => ProxyOrigin::new(address.clone(), tls, limits),
                    }
                };
                let origins = rule.origins.iter().map(origin).collect();
                Arc::new(ActiveRule { rule, origins })
            })
            .collect();
        for origin in kept {
            origin.pool.clear();
        }
        // The longest path first, and a rule for certain hosts before one for all.
        active.sort_by_key(|one| {
            std::cmp::Reverse((one.rule.path.len(), !one.rule.hosts.is_empty()))
        });
        self.has_rules.store(!active.is_empty(), Ordering::Release);
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = active.into();
    }

    /// All rules, in the order in which they are tried.
    pub(super) fn all(&self) -> Arc<[Arc<ActiveRule>]> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The rule of a request.
    pub(super) fn find(&self, path: &str, request: &Incoming<'_>) -> Option<Arc<ActiveRule>> {
        if !self.has_rules.load(Ordering::Acquire) {
            return None;
        }
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let authority = request.head.authority();
        rules.iter().find(|one| one.accepts(path, authority)).cloned()
    }
}

impl ActiveRule {
    fn accepts(&self, path: &str, authority: Option<&str>) -> bool {
        let is_path = match path.strip_prefix(&*self.rule.path) {
            Some(rest) => self.rule.path == "/" || rest.is_empty() || rest.starts_with('/'),
            None => false,
        };
        let is_host = || {
            let host = authority.map(without_port).unwrap_or_default();
            self.rule.hosts.iter().any(|pattern| pattern.fit(host).is_some())
        };
        is_path && (self.rule.hosts.is_empty() || is_host())
    }

    /// The origin for a request, other than those that were `tried`, and whether the client gets a
    /// cookie for it. `None`: none is up.
    pub(super) fn choose(
        &self,
        request: &BalancedRequest<'_>,
        tried: &[usize],
    ) -> Option<(usize, bool)> {
        let mut candidates = self.candidates(tried, true);
        if candidates.is_empty() {
            // An origin that rests may be up again. One whose active check fails is not.
            candidates = self.candidates(tried, false);
        }
        if candidates.len() < 2 && self.rule.sticky == Sticky::Off {
            return candidates.first().map(|one| (one.index, false));
        }
        match self.rule.sticky {
            Sticky::Off => {}
            Sticky::Cookie => {
                let given = cookie(request.field("cookie").unwrap_or_default());
                let bound = candidates.iter().find(|one| Some(&*key_of(one.address)) == given);
                if let Some(bound) = bound {
                    return Some((bound.index, false));
                }
            }
            Sticky::Address => {
                // The highest hash of client and origin, so that a change of the origins moves few
                // clients.
                let rank = |one: &&OriginCandidate<'_>| hash((request.client, one.address));
                return candidates.iter().max_by_key(rank).map(|one| (one.index, false));
            }
        }
        if candidates.is_empty() {
            return None;
        }
        let place = self.rule.balance.policy.choose(&candidates, request);
        let chosen = candidates.get(place).or(candidates.last())?;
        Some((chosen.index, self.rule.sticky == Sticky::Cookie))
    }

    fn candidates(&self, tried: &[usize], needs_health: bool) -> Vec<OriginCandidate<'_>> {
        let origins = self.origins.iter().enumerate();
        let open = origins.filter(|(index, origin)| {
            let is_usable = if needs_health { origin.is_up() } else { !origin.is_down() };
            !tried.contains(index) && is_usable
        });
        open.map(|(index, origin)| OriginCandidate {
            index,
            address: &origin.name,
            weight: origin.weight(self.rule.weight(index), self.rule.slow_start),
            outstanding: origin.places.running(),
        })
        .collect()
    }
}

/// The value of the cookie of an origin, which does not reveal its address.
pub(super) fn key_of(address: &str) -> String {
    format!("{:016x}", hash(("bine origin", address)))
}

fn hash(value: impl std::hash::Hash) -> u64 {
    // Without random keys: all nodes and all starts give the same values.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn cookie(field: &str) -> Option<&str> {
    let pairs = field.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bine_http::{Event, Limits, RequestParser};

    use super::*;

    fn active(text: &str) -> Arc<ActiveRule> {
        let rules = ActiveRules::default();
        rules.replace(vec![ProxyRule::parse(text).unwrap()]);
        Arc::clone(&rules.all()[0])
    }

    /// The origin of a request with this `Cookie` field and client.
    fn chosen(
        rule: &ActiveRule,
        cookie: &str,
        client: u8,
        tried: &[usize],
    ) -> Option<(usize, bool)> {
        let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n");
        let mut parser = RequestParser::new();
        let Event::Head(head) = parser.receive(bytes.as_bytes(), &Limits::default()).event else {
            panic!("it is a request");
        };
        let client = Some([10, 0, 0, client].into());
        rule.choose(&BalancedRequest { head, path: "/", client }, tried)
    }

    const THREE: &str = "to=http://a,http://b,http://c";

    #[test]
    fn prefers_the_longest_path_and_a_named_host() {
        let rules = ActiveRules::default();
        let texts = [
            "path=/ to=http://all",
            "path=/shop to=http://shop",
            "path=/shop hosts=*.example to=http://host",
        ];
        rules.replace(texts.map(|text| ProxyRule::parse(text).unwrap()).into());
        let find = |path: &str, host: &str| {
            let all = rules.all();
            let found = all.iter().find(|one| one.accepts(path, Some(host))).unwrap();
            found.origins[0].name.clone()
        };
        assert_eq!(find("/", "a"), "http://all");
        assert_eq!(find("/shopping", "a"), "http://all");
        assert_eq!(find("/shop", "a"), "http://shop");
        assert_eq!(find("/shop/1", "a.example:80"), "http://host");
    }

    #[test]
    fn passes_over_origins_that_rest_until_all_do() {
        let rule = active(THREE);
        let long = Duration::from_hours(1);
        rule.origins[0].note_failure(1, long);
        let found: Vec<_> = (0..4).map(|_| chosen(&rule, "", 1, &[]).unwrap().0).collect();
        assert_eq!(found, [1, 2, 1, 2]);
        assert_eq!(chosen(&rule, "", 1, &[1]), Some((2, false)));
        rule.origins[1].note_failure(1, long);
        rule.origins[2].note_check(true);
        assert!(chosen(&rule, "", 1, &[]).unwrap().0 < 2, "those that rest are tried");
        assert_eq!(chosen(&rule, "", 1, &[0, 1]), None, "one that is down is not");
    }

    #[test]
    fn binds_a_client_by_cookie_while_its_origin_is_up() {
        let rule = active(&format!("{THREE} sticky=cookie"));
        let (index, is_new) = chosen(&rule, "x=y", 1, &[]).unwrap();
        assert!(is_new);
        let field = format!("x=y; {COOKIE}={}", key_of(&rule.origins[index].name));
        assert!((0..5).all(|_| chosen(&rule, &field, 1, &[]) == Some((index, false))));
        rule.origins[index].note_check(true);
        let (other, is_new) = chosen(&rule, &field, 1, &[]).unwrap();
        assert!(other != index && is_new);
    }

    #[test]
    fn binds_a_client_by_address() {
        let rule = active(&format!("{THREE} sticky=address"));
        let of = |client| chosen(&rule, "", client, &[]).unwrap().0;
        assert!((0..5).all(|_| of(7) == of(7)));
        let used: std::collections::BTreeSet<_> = (0..50).map(of).collect();
        assert_eq!(used.len(), 3, "all origins are used");
    }

    #[test]
    fn keeps_origins_that_a_reload_does_not_change() {
        let rules = ActiveRules::default();
        let parse = |text: &str| vec![ProxyRule::parse(text).unwrap()];
        rules.replace(parse("to=http://a,http://b"));
        let before = rules.all();
        rules.replace(parse("to=http://b,http://c weights=2,1"));
        let after = rules.all();
        assert!(Arc::ptr_eq(&before[0].origins[1], &after[0].origins[0]));
        assert_eq!(after[0].origins[1].name, "http://c");
        rules.replace(parse("to=http://b kept=1"));
        assert!(!Arc::ptr_eq(&before[0].origins[1], &rules.all()[0].origins[0]), "new limits");
    }

    #[test]
    fn keeps_origins_with_tls_until_their_certificates_change() {
        let path = std::env::temp_dir().join(format!("bine-authority-{}.pem", std::process::id()));
        let certificate = || {
            let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
            std::fs::write(&path, made.cert.pem()).unwrap();
        };
        let rules = ActiveRules::default();
        let replace = || {
            let text = format!("to=https://a,http://b origin-authority={}", path.display());
            rules.replace(vec![ProxyRule::parse(&text).unwrap()]);
            rules.all()[0].origins.clone()
        };
        certificate();
        let first = replace();
        let same = replace();
        certificate();
        let changed = replace();
        std::fs::remove_file(&path).unwrap();
        assert!(Arc::ptr_eq(&first[0], &same[0]) && !Arc::ptr_eq(&same[0], &changed[0]));
        assert!(Arc::ptr_eq(&first[1], &changed[1]), "an origin without TLS has no certificates");
    }
}
