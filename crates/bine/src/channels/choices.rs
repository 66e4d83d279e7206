//! The configuration keys of channels.

use std::path::PathBuf;

use super::access::rule;
use super::origin::origin;
use super::{Access, ClientLimits, Pattern, TokenVerifier};
use crate::configuration::values::{bytes, number};
use crate::configuration::{Configuration, Key, KeyGroup, Kind};

/// The settings for channels, in addition to those of the program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ChannelChoices {
    /// The channels that all clients may follow.
    follow: Vec<Pattern>,
    publish: Vec<Pattern>,
    manage: Vec<Pattern>,
    /// The file with the key that signs tokens.
    key: Option<PathBuf>,
    issuer: Option<String>,
    audience: Option<String>,
    /// Other sites whose pages may connect.
    origins: Vec<String>,
    holds: Option<u32>,
    holds_per_address: Option<u32>,
    holds_per_subject: Option<u32>,
    messages_per_address: Option<u32>,
    messages_per_subject: Option<u32>,
    bytes: Option<u64>,
    bytes_per_channel: Option<u64>,
    bytes_per_subject: Option<u64>,
}

inventory::submit! {
    KeyGroup { keys: KEYS, after: "sync", rank: 30, adds_content: |configuration| configuration.choice::<ChannelChoices>().are_some() }
}

static KEYS: &[Key] = &[
    Key::server("channels-follow", "RULE", &[], "all clients may follow these channels, repeatable: a name, `news/*`, `chat/{room}`", |c, v| {
        choices(c).follow.push(rule(v)?);
        Ok(())
    })
    .kind(Kind::Words)
    .fixed(),
    Key::server("channels-publish", "RULE", &[], "all clients may publish in these channels, repeatable", |c, v| {
        choices(c).publish.push(rule(v)?);
        Ok(())
    })
    .kind(Kind::Words)
    .fixed(),
    Key::server("channels-manage", "RULE", &[], "all clients may create, renew, close and remove these channels, repeatable", |c, v| {
        choices(c).manage.push(rule(v)?);
        Ok(())
    })
    .kind(Kind::Words)
    .fixed(),
    Key::server("channels-key", "FILE", &[], "key that verifies access tokens: a secret of at least 32 bytes, a public key (PEM) or a set of keys (JWKS)", |c, v| {
        choices(c).key = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path)
    .fixed(),
    Key::server("channels-issuer", "NAME", &[], "accept only tokens with this `iss`", |c, v| {
        choices(c).issuer = Some(v.to_owned());
        Ok(())
    })
    .fixed(),
    Key::server("channels-audience", "NAME", &[], "accept only tokens with this `aud`", |c, v| {
        choices(c).audience = Some(v.to_owned());
        Ok(())
    })
    .fixed(),
    Key::server("channels-origin", "ORIGIN", &[], "pages of this other site may use channels too, repeatable: https://example.org", |c, v| {
        choices(c).origins.push(origin(v)?.to_string());
        Ok(())
    })
    .kind(Kind::Words)
    .fixed(),
    Key::server("channels-holds", "N", &[], "waiting polls, streams and WebSockets at a time; default: a million", |c, v| {
        choices(c).holds = Some(number(v, 1)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-holds-per-address", "N", &[], "waiting polls, streams and WebSockets from one remote address; default: 256", |c, v| {
        choices(c).holds_per_address = Some(number(v, 1)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-holds-per-subject", "N", &[], "waiting polls, streams and WebSockets of one subject, named by a token or the program; default: 256", |c, v| {
        choices(c).holds_per_subject = Some(number(v, 1)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-messages-per-address", "N", &[], "messages per second from one remote address; default: 100", |c, v| {
        choices(c).messages_per_address = Some(number(v, 1)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-bytes", "BYTES", &[], "memory for all channels; default: a quarter of the limit of the machine, the control group or most-memory", |c, v| {
        choices(c).bytes = Some(bytes(v)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-bytes-per-channel", "BYTES", &[], "memory for the messages of one channel; default: a quarter of channels-bytes", |c, v| {
        choices(c).bytes_per_channel = Some(bytes(v)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-bytes-per-subject", "BYTES", &[], "memory for the messages of one subject, or of one address without a subject; default: a quarter of channels-bytes", |c, v| {
        choices(c).bytes_per_subject = Some(bytes(v)?);
        Ok(())
    })
    .fixed(),
    Key::server("channels-messages-per-subject", "N", &[], "messages per second of one subject; default: 1000", |c, v| {
        choices(c).messages_per_subject = Some(number(v, 1)?);
        Ok(())
    })
    .fixed(),
];

fn choices(configuration: &mut Configuration) -> &mut ChannelChoices {
    configuration.choice_mut()
}

/// The error for rules about tokens without a key.
const KEYLESS: &str = "channels-issuer and channels-audience say which tokens are taken, and none are: \
    say by channels-key with what they are signed";

impl ChannelChoices {
    /// Whether any setting gives access to channels.
    pub(crate) fn are_some(&self) -> bool {
        let rules = [&self.follow, &self.publish, &self.manage];
        self.key.is_some() || self.are_for_tokens() || rules.iter().any(|rules| !rules.is_empty())
    }

    /// Whether any setting restricts tokens.
    const fn are_for_tokens(&self) -> bool {
        self.issuer.is_some() || self.audience.is_some()
    }

    /// Combines the program's rules with these. `memory` is the server's memory limit in bytes.
    pub(crate) fn added_to(&self, mut access: Access, memory: Option<u64>) -> Access {
        access = self.follow.iter().cloned().fold(access, Access::follow);
        access = self.publish.iter().cloned().fold(access, Access::publish);
        access = self.manage.iter().cloned().fold(access, Access::manage);
        access = self.origins.iter().fold(access, |access, origin| access.origin(origin));
        if self.key.is_some() || self.are_for_tokens() {
            access = access.amend_tokens(|own| {
                let tokens = match (own, self.key.as_ref().map(TokenVerifier::key_file)) {
                    (Some(own), Some(file)) => own.or(file),
                    (Some(own), None) => own,
                    (None, Some(file)) => file,
                    (None, None) => TokenVerifier::wrong(KEYLESS),
                };
                let tokens = self.issuer.iter().fold(tokens, |tokens, name| tokens.issuer(name));
                self.audience.iter().fold(tokens, |tokens, name| tokens.audience(name))
            });
        }
        access.amend_client_limits(|client_limits| ClientLimits {
            holds: self.holds.unwrap_or(client_limits.holds),
            holds_per_address: self.holds_per_address.unwrap_or(client_limits.holds_per_address),
            holds_per_subject: self.holds_per_subject.unwrap_or(client_limits.holds_per_subject),
            messages_per_address: self
                .messages_per_address
                .unwrap_or(client_limits.messages_per_address),
            messages_per_subject: self
                .messages_per_subject
                .unwrap_or(client_limits.messages_per_subject),
            bytes: self.bytes.or(client_limits.bytes).or(memory.map(|memory| memory / 4)),
            bytes_per_channel: self.bytes_per_channel.or(client_limits.bytes_per_channel),
            bytes_per_subject: self.bytes_per_subject.or(client_limits.bytes_per_subject),
        })
    }
}
