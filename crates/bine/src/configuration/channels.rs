//! The configuration's settings for channels.

use std::path::PathBuf;

use crate::channels::{Access, Caps, Pattern, Tokens};

/// The settings for channels, in addition to those of the program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ChannelChoices {
    /// The channels that all clients may follow.
    pub(super) follow: Vec<Pattern>,
    pub(super) publish: Vec<Pattern>,
    pub(super) manage: Vec<Pattern>,
    /// The file with the key that signs tokens.
    pub(super) key: Option<PathBuf>,
    pub(super) issuer: Option<String>,
    pub(super) audience: Option<String>,
    /// Other sites whose pages may connect.
    pub(super) origins: Vec<String>,
    pub(super) holds: Option<u32>,
    pub(super) holds_per_address: Option<u32>,
    pub(super) holds_per_subject: Option<u32>,
    pub(super) messages_per_address: Option<u32>,
    pub(super) messages_per_subject: Option<u32>,
    pub(super) bytes: Option<u64>,
    pub(super) bytes_per_channel: Option<u64>,
    pub(super) bytes_per_subject: Option<u64>,
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
                let tokens = match (own, self.key.as_ref().map(Tokens::key_file)) {
                    (Some(own), Some(file)) => own.or(file),
                    (Some(own), None) => own,
                    (None, Some(file)) => file,
                    (None, None) => Tokens::wrong(KEYLESS),
                };
                let tokens = self.issuer.iter().fold(tokens, |tokens, name| tokens.issuer(name));
                self.audience.iter().fold(tokens, |tokens, name| tokens.audience(name))
            });
        }
        access.amend_caps(|caps| Caps {
            holds: self.holds.unwrap_or(caps.holds),
            holds_per_address: self.holds_per_address.unwrap_or(caps.holds_per_address),
            holds_per_subject: self.holds_per_subject.unwrap_or(caps.holds_per_subject),
            messages_per_address: self.messages_per_address.unwrap_or(caps.messages_per_address),
            messages_per_subject: self.messages_per_subject.unwrap_or(caps.messages_per_subject),
            bytes: self.bytes.or(caps.bytes).or(memory.map(|memory| memory / 4)),
            bytes_per_channel: self.bytes_per_channel.or(caps.bytes_per_channel),
            bytes_per_subject: self.bytes_per_subject.or(caps.bytes_per_subject),
        })
    }
}
