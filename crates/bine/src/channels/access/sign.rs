//! Encodes grants as signed tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::hmac;
use serde_json::{Map, Value, json};

use super::grant::{ChannelAction, Grant};
use super::key::TokenKey;
use crate::base64;

impl Grant {
    /// Encodes this grant as a token (RFC 7519) for
    /// [`TokenVerifier::hs256`](super::TokenVerifier::hs256) with the same secret. A page of the
    /// program can use it, or another server for its own visitors.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use bine::channels::{Grant, Pattern};
    ///
    /// let end = SystemTime::now() + Duration::from_secs(3600);
    /// let grant = Grant::to("ann").follow(Pattern::new("news/*")).until(end);
    /// let token = grant.token("one of at least thirty-two bytes, kept elsewhere")?;
    /// # drop(token);
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The grant has no subject, no end, or an invalid rule; or the secret is too short.
    pub fn token(&self, secret: impl AsRef<[u8]>) -> Result<String, String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.token_at(secret.as_ref(), now)
    }

    /// Encodes the grant as issued at `now`, in seconds since 1970.
    pub(super) fn token_at(&self, secret: &[u8], now: u64) -> Result<String, String> {
        if let Some(fault) = self.fault() {
            return Err(fault.to_owned());
        }
        let subject =
            self.subject.as_deref().ok_or("a token is somebody's: begin with Grant::to")?;
        let until = self.until.ok_or("a token has an end: say Grant::until")?;
        TokenKey::hs256(secret)?;
        let actions =
            [ChannelAction::Follow, ChannelAction::Publish, ChannelAction::Manage].into_iter();
        let given = actions.map(|action| (action.name().to_owned(), self.rules.names(action)));
        let given: Map<String, Value> = given.filter(|(_, names)| *names != json!([])).collect();
        let claims = json!({"sub": subject, "iat": now, "exp": until / 1000, "channels": given});
        Ok(signed(secret, claims.to_string().as_bytes()))
    }
}

/// Signs claims with HS256.
pub(super) fn signed(secret: &[u8], claims: &[u8]) -> String {
    let head = base64::written(br#"{"alg":"HS256","typ":"JWT"}"#);
    let text = format!("{head}.{}", base64::written(claims));
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes());
    format!("{text}.{}", base64::written(signature.as_ref()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::channels::{Pattern, TokenVerifier};

    const SECRET: &[u8] = b"a secret of more than thirty-two bytes";

    #[test]
    fn signed_grant_is_valid_until_its_end() {
        let end = UNIX_EPOCH + Duration::from_secs(2000);
        let (news, rooms) = (Pattern::new("news/*"), Pattern::new("chat/{room}"));
        let grant = Grant::to("ann").follow(news).publish(rooms).until(end);
        let token = grant.token_at(SECRET, 1000).unwrap();
        let taken = TokenVerifier::hs256(SECRET).read(&token, 1_500_000).unwrap();
        assert_eq!((taken.issued, taken.grant.until), (1_000_000, Some(2_000_000)));
        assert_eq!(taken.grant.subject.as_deref(), Some("ann"));
        let may = |action, channel| taken.grant.rules.permit(action, channel);
        assert!(may(ChannelAction::Follow, "news/1") && may(ChannelAction::Publish, "chat/1"));
        assert!(!may(ChannelAction::Publish, "news/1") && !may(ChannelAction::Manage, "chat/1"));
        assert!(TokenVerifier::hs256(SECRET).read(&token, 2_000_000).is_err());
        assert!(TokenVerifier::hs256([7; 32]).read(&token, 1_500_000).is_err());
    }

    #[test]
    fn does_not_sign_invalid_grants() {
        let grant = Grant::to("ann").follow("news").until(UNIX_EPOCH + Duration::from_secs(2000));
        for (grant, secret, reason) in [
            (Grant::none(), SECRET, "a token is somebody's"),
            (Grant::to("ann"), SECRET, "a token has an end"),
            (grant.clone().follow("a*b"), SECRET, "`a*b` is taken for the name of one channel"),
            (Grant::to("*").follow("a"), SECRET, "nothing is granted: \"*\" is no name of a user"),
            (grant, b"short", "a secret of 5 bytes"),
        ] {
            let told = grant.token_at(secret, 1000).unwrap_err();
            assert!(told.starts_with(reason), "{told}");
        }
    }
}
