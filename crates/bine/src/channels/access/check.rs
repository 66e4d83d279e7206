//! Fuzz target for names, patterns and grants.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::json;

use super::grant::{ChannelAction, Grant};
use super::pattern::{ChannelRule, Pattern, USER};
use super::sign::signed;
use super::token::TokenVerifier;
use crate::user_name::UserName;

const SECRET: &[u8] = b"thirty-two bytes or more of secret";
/// In milliseconds since 1970.
const NOW: u64 = 1_800_000_000_000;
const END: u64 = NOW + 60_000;
/// Longer texts produce tokens over the size limit.
const MAX_TEXT: usize = 1000;

/// Checks any three lines: a user's name, a rule and a channel's name. Grants and tokens accept the
/// same user names. A rule from a text permits that channel only, also in a token. A pattern
/// permits what its text describes. A user's name in a rule never becomes pattern syntax.
pub fn check_grant(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.splitn(3, '\n');
    let (Some(user), Some(rule), Some(channel), true) =
        (lines.next(), lines.next(), lines.next(), text.len() <= MAX_TEXT)
    else {
        return;
    };
    let user = check_user(user);
    check_name(rule, channel);
    let pattern = Pattern::parse(rule);
    if let Ok(pattern) = &pattern {
        check_pattern(pattern, rule, channel);
    }
    if let Some(user) = &user {
        let rules = [Some(ChannelRule::from(rule)), pattern.ok().map(ChannelRule::from)];
        for rule in rules.into_iter().flatten().filter_map(|rule| rule.check_for_users().ok()) {
            check_own(&rule, user, channel);
        }
    }
}

/// A grant and a token accept the same user names.
fn check_user(text: &str) -> Option<UserName> {
    let user = UserName::parse(text);
    let claims = json!({"sub": text, "iat": NOW / 1000, "exp": END / 1000});
    let taken =
        TokenVerifier::hs256(SECRET).read(&signed(SECRET, claims.to_string().as_bytes()), NOW);
    assert_eq!(taken.is_ok(), user.is_ok(), "by a token");
    let grant = Grant::to(text);
    assert_eq!(grant.fault().is_none(), user.is_ok(), "by a grant");
    let Ok(user) = user else {
        let nothing = grant.follow(text).sound();
        assert!(nothing.subject.is_none() && nothing.rules.are_none());
        return None;
    };
    assert_eq!((user.as_str(), user.to_string().as_str()), (text, text));
    for subject in [grant.subject, taken.ok().and_then(|taken| taken.grant.subject)] {
        assert_eq!(subject.as_deref(), Some(text));
    }
    // A user's name is one segment without syntax.
    let inbox = format!("inbox/{user}");
    assert!(ChannelRule::from(&inbox).check().is_ok() && inbox.split('/').count() == 2);
    Some(user)
}

/// A text is the name of one channel, in a rule, in a grant and in a token.
fn check_name(name: &str, channel: &str) {
    let is_same = name == channel;
    assert_eq!(ChannelRule::from(name).matches(channel), is_same);
    assert!(ChannelRule::from(name).matches(name));
    let grant = Grant::to("ann").follow(name).until(UNIX_EPOCH + Duration::from_millis(END));
    let is_name = ChannelRule::from(name).check().is_ok();
    assert_eq!(grant.fault().is_none(), is_name);
    if !is_name {
        return assert!(grant.rules.are_none() && grant.token(SECRET).is_err());
    }
    assert!(!name.contains(['*', '{', '}']));
    // A token stores it as a pattern with the same meaning.
    let token = grant.token_at(SECRET, NOW / 1000).expect("nothing of it is wrong");
    let taken = TokenVerifier::hs256(SECRET).read(&token, NOW).expect("what was signed is taken");
    for rules in [&grant.rules, &taken.grant.rules] {
        assert!(rules.permit(ChannelAction::Follow, name));
        assert_eq!(rules.permit(ChannelAction::Follow, channel), is_same);
        assert!(
            !rules.permit_some(ChannelAction::Publish) && !rules.permit_some(ChannelAction::Manage)
        );
    }
}

/// A pattern is displayed as it was parsed, and matches what its text describes.
fn check_pattern(pattern: &Pattern, text: &str, channel: &str) {
    assert_eq!((pattern.as_str(), pattern.to_string().as_str()), (text, text));
    assert_eq!(Pattern::parse(&pattern.to_string()).as_ref(), Ok(pattern));
    assert_eq!(pattern.matches(channel), is_meant(text, channel), "{text} and {channel}");
}

/// Matches by the documentation's definition of patterns.
fn is_meant(pattern: &str, channel: &str) -> bool {
    let (front, has_rest) =
        pattern.strip_suffix('*').map_or((pattern, false), |front| (front, true));
    let own: Vec<&str> = front.split('/').collect();
    let channels: Vec<&str> =
        channel.splitn(if has_rest { own.len() } else { usize::MAX }, '/').collect();
    let is_any = |segment: &str| segment.starts_with('{');
    own.len() == channels.len()
        && own.iter().zip(&channels).enumerate().all(|(at, (own, segment))| match () {
            () if has_rest && at + 1 == channels.len() => segment.starts_with(own),
            () if is_any(own) => !segment.is_empty(),
            () => own == segment,
        })
}

/// A user's rule contains the name as a segment, and no additional syntax.
fn check_own(rule: &ChannelRule, user: &UserName, channel: &str) {
    let own = rule.of_user(user);
    let syntax = |segment: &&str| segment.contains(['*', '{', '}']);
    let places: Vec<bool> = rule.text().split('/').map(|segment| segment == USER).collect();
    let before = rule.text().split('/').filter(syntax).count();
    let after = own.text().split('/').filter(syntax).count();
    assert_eq!(after, before - places.iter().filter(|is_user| **is_user).count());
    assert_eq!(own.text().split('/').count(), places.len());
    match &own {
        ChannelRule::Name(name) => assert!(own.clone().check().is_ok() && own.matches(name)),
        ChannelRule::Pattern(pattern) => {
            assert_eq!(Pattern::parse(pattern.as_str()).as_ref(), Ok(pattern));
        }
    }
    // The channel of the same shape that belongs to the user.
    let segments = channel.split('/').zip(places.iter().chain(std::iter::repeat(&false)));
    let theirs: Vec<&str> =
        segments.map(|(segment, is_user)| if *is_user { user } else { segment }).collect();
    let theirs = theirs.join("/");
    if own.matches(channel) {
        assert_eq!(channel, theirs, "{own:?} is for {user} alone");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::check_grant;

    proptest! {
        #[test]
        fn arbitrary_names_and_patterns_match_their_definition(
            user in "[a-c*{}/ ]{1,4}|ann|\\PC{0,8}",
            rule in "([a-c*{}]|\\{user\\}|\\{a\\}|/|ann){0,5}\\*?",
            channel in "([a-c*{}]|\\{user\\}|/|ann){0,6}",
        ) {
            check_grant(format!("{user}\n{rule}\n{channel}").as_bytes());
        }
    }
}
