//! Security headers of responses, and facts about certificates.

use std::borrow::Cow;

use bine_http::FieldLines;

pub(crate) mod certificate;
pub(crate) mod der;

/// Seconds of `Strict-Transport-Security` with a public certificate: 180 days, so that users who
/// return twice a year stay protected.
pub(crate) const HSTS: u32 = 180 * 24 * 60 * 60;

/// The default policy of pages: everything is loaded from the page's own origin. `style-src-attr`
/// permits the attribute `style`, which `html!` fills only from `raw(..)`. `X-Frame-Options`
/// controls embedding, so that one setting decides it.
const STRICT: &str = "default-src 'self'; img-src 'self' data:; style-src-attr 'unsafe-inline'; object-src 'none'; base-uri 'none'; form-action 'self'";

const POLICY: &str = "Content-Security-Policy";

/// The security headers of a program's responses, for [`App::security_headers`](crate::App::security_headers).
///
/// ```
/// use bine::{App, Frames, SecurityHeaders};
///
/// let headers = SecurityHeaders::new()
///     .frames(Frames::Deny)
///     .content_security_policy("default-src 'self'; img-src 'self' https://images.example");
/// let app = App::new().security_headers(headers);
/// # drop(app);
/// ```
///
/// The keys `nosniff`, `frames` and `content-security-policy` of the configuration override the
/// program. A response overrides both by a header of the same name; an empty value removes the
/// header.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "headers do nothing until an app has them"]
pub struct SecurityHeaders {
    has_nosniff: bool,
    frames: Frames,
    policy: Policy,
}

/// Which pages may embed a response in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Frames {
    /// Pages of the same origin: `X-Frame-Options: SAMEORIGIN`.
    #[default]
    SameOrigin,
    /// No page: `X-Frame-Options: DENY`.
    Deny,
    /// All pages: no header.
    Any,
}

/// The content security policy of pages made by `html!`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Policy {
    #[default]
    Strict,
    Own(Cow<'static, str>),
    Off,
}

/// The configuration's settings for security headers. `None`: the program decides.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct HeaderChoices {
    pub(crate) nosniff: Option<bool>,
    pub(crate) frames: Option<Frames>,
    pub(crate) policy: Option<Policy>,
}

impl SecurityHeaders {
    /// The defaults: `nosniff`, frames of the same origin, and the strict policy.
    pub const fn new() -> Self {
        Self { has_nosniff: true, frames: Frames::SameOrigin, policy: Policy::Strict }
    }

    /// Lets browsers guess the media type of a response.
    pub const fn without_nosniff(mut self) -> Self {
        self.has_nosniff = false;
        self
    }

    /// Sets which pages may embed a response in a frame.
    pub const fn frames(mut self, frames: Frames) -> Self {
        self.frames = frames;
        self
    }

    /// Replaces the content security policy of pages made by `html!`.
    ///
    /// # Panics
    ///
    /// Panics if the policy is not visible ASCII.
    pub fn content_security_policy(mut self, policy: impl Into<Cow<'static, str>>) -> Self {
        let policy = policy.into();
        if let Err(reason) = check_policy(&policy) {
            panic!("a content security policy {reason}");
        }
        self.policy = Policy::Own(policy);
        self
    }

    /// Gives pages no content security policy.
    pub fn without_content_security_policy(mut self) -> Self {
        self.policy = Policy::Off;
        self
    }

    /// These headers with the configuration's settings applied.
    pub(crate) fn chosen(&self, choices: &HeaderChoices) -> Self {
        Self {
            has_nosniff: choices.nosniff.unwrap_or(self.has_nosniff),
            frames: choices.frames.unwrap_or(self.frames),
            policy: choices.policy.clone().unwrap_or_else(|| self.policy.clone()),
        }
    }

    /// The headers of every response.
    pub(crate) fn of_responses(&self) -> bine_http::SecurityHeaders {
        use bine_http::SecurityHeaders as Set;

        let nosniff = if self.has_nosniff { Set::NOSNIFF } else { Set::NONE };
        nosniff.with(match self.frames {
            Frames::SameOrigin => Set::SAME_ORIGIN_FRAMES,
            Frames::Deny => Set::NO_FRAMES,
            Frames::Any => Set::NONE,
        })
    }

    /// The header line of pages, as it is sent.
    pub(crate) fn of_pages(&self) -> FieldLines {
        let mut lines = FieldLines::new();
        let policy = match &self.policy {
            Policy::Strict => STRICT,
            Policy::Own(policy) => policy,
            Policy::Off => return lines,
        };
        lines.add(POLICY, policy).expect("a policy was checked when it was read");
        lines
    }
}

impl Default for SecurityHeaders {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy {
    /// Parses a value of the key `content-security-policy`; `None` means `auto`.
    pub(crate) fn read(text: &str) -> Result<Option<Self>, String> {
        Ok(match text {
            "auto" => None,
            "strict" => Some(Self::Strict),
            "off" => Some(Self::Off),
            policy => {
                check_policy(policy)?;
                Some(Self::Own(policy.to_owned().into()))
            }
        })
    }
}

impl Frames {
    /// Parses a value of the key `frames`; `None` means `auto`.
    pub(crate) fn read(text: &str) -> Result<Option<Self>, String> {
        Ok(match text {
            "auto" => None,
            "same-origin" => Some(Self::SameOrigin),
            "deny" => Some(Self::Deny),
            "any" => Some(Self::Any),
            _ => return Err("must be same-origin, deny, any or auto".to_owned()),
        })
    }
}

/// Whether `name` is a header that the server adds by default, so that an empty value removes it.
pub(crate) fn is_default(name: &str) -> bool {
    is_policy(name) || bine_http::SecurityHeaders::named(name) != bine_http::SecurityHeaders::NONE
}

/// Whether `name` is the header of the policy.
pub(crate) fn is_policy(name: &str) -> bool {
    name.eq_ignore_ascii_case(POLICY)
}

fn check_policy(policy: &str) -> Result<(), String> {
    let is_visible = policy.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let has_directive = policy.contains('\'') || policy.contains("-src");
    if has_directive && is_visible {
        return Ok(());
    }
    Err("must be directives in ASCII, like \"default-src 'self'\"; or strict, off, auto".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(headers: &SecurityHeaders) -> usize {
        headers.of_pages().len()
    }

    #[test]
    fn lets_the_configuration_override_the_program() {
        let own = SecurityHeaders::new().without_nosniff().frames(Frames::Any);
        let own = own.content_security_policy("default-src 'none'");
        let none = HeaderChoices::default();
        assert_eq!(own.chosen(&none), own);
        let choices = HeaderChoices {
            nosniff: Some(true),
            frames: Frames::read("deny").unwrap(),
            policy: Policy::read("off").unwrap(),
        };
        let chosen = own.chosen(&choices);
        let set = bine_http::SecurityHeaders::NOSNIFF.with(bine_http::SecurityHeaders::NO_FRAMES);
        assert_eq!(chosen.of_responses(), set);
        assert_eq!(lines(&chosen), 0);
        assert_eq!(lines(&own), POLICY.len() + ": default-src 'none'\r\n".len());
    }

    #[test]
    fn rejects_invalid_policies() {
        for wrong in ["", "on", "default-src 'self'\r\nA: b", "default-src \u{e4}'"] {
            assert!(Policy::read(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(Policy::read("auto"), Ok(None));
        assert_eq!(Policy::read("strict"), Ok(Some(Policy::Strict)));
        assert!(Frames::read("sameorigin").is_err());
    }
}
