//! Validates JSON Web Tokens (RFC 7519), and reads the grants in them.

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs};

use serde_json::Value;

use super::grant::{ChannelAction, Grant};
use super::key::TokenKey;
use super::pattern::Pattern;
use super::sign::signed;
use crate::base64;
use crate::user_name::UserName;

/// Signed tokens. Each contains the grant of its bearer.
///
/// ```
/// use bine::channels::{Access, TokenVerifier};
///
/// let secret = "one of at least thirty-two bytes, kept elsewhere";
/// let tokens = TokenVerifier::hs256(secret).issuer("https://login.example.org");
/// let access = Access::none().tokens(tokens);
/// # drop(access);
/// ```
///
/// A token is a JSON Web Token (RFC 7519). It contains `sub`, the subject; `iat`, the time of
/// issue; `exp`, the end; and `channels`, an object of arrays `follow`, `publish` and `manage` of
/// [patterns](super::Pattern). `nbf`, `aud` and `iss` are checked if present. The key determines
/// the signature algorithm; the token cannot choose it.
#[derive(Clone)]
#[must_use]
pub struct TokenVerifier {
    keys: Vec<TrustedKey>,
    pub(super) cookie: String,
    pub(super) longest: Duration,
    fault: Option<String>,
}

/// A key with the issuer and audience of its tokens.
#[derive(Clone)]
struct TrustedKey {
    key: Arc<TokenKey>,
    issuer: Option<Arc<str>>,
    audience: Option<Arc<str>>,
}

/// A validated token.
pub(super) struct ValidatedToken {
    pub(super) grant: Grant,
    /// The time of issue in milliseconds since 1970.
    pub(super) issued: u64,
}

/// Maximum bytes of a token.
const MAX_BYTES: usize = 8 << 10;
/// Tolerated clock difference in milliseconds. The end of a token has no tolerance.
const SKEW: u64 = 60_000;
/// Maximum timestamp in seconds since 1970: 2^53 milliseconds.
const MAX_TIMESTAMP: f64 = 9_007_199_254_740.0;
const YEAR: Duration = Duration::from_hours(366 * 24);
/// The claim with the grant.
const CLAIM: &str = "channels";

impl TokenVerifier {
    /// Tokens signed with a secret of at least 32 bytes, shared with the issuer.
    pub fn hs256(secret: impl AsRef<[u8]>) -> Self {
        Self::of(TokenKey::hs256(secret.as_ref()))
    }

    /// Tokens signed with ECDSA on the curve P-256; `pem` is the public key.
    pub fn es256(pem: &str) -> Self {
        Self::of(TokenKey::es256(pem))
    }

    /// Tokens signed with Ed25519 (RFC 8037); `pem` is the public key.
    pub fn eddsa(pem: &str) -> Self {
        Self::of(TokenKey::eddsa(pem))
    }

    /// Tokens signed with RSA and SHA-256; `pem` is the public key of at least 2048 bits.
    pub fn rs256(pem: &str) -> Self {
        Self::of(TokenKey::rs256(pem))
    }

    /// Tokens signed with a key of a set (JWKS, RFC 7517), a file that the start of the program
    /// reads.
    pub fn key_set(file: impl AsRef<std::path::Path>) -> Self {
        let file = file.as_ref();
        let told = |fault: String| format!("{}: {fault}", file.display());
        let json = fs::read_to_string(file).map_err(|error| told(error.to_string()));
        let keys = json.and_then(|json| TokenKey::of_set(&json).map_err(told));
        Self::with(keys)
    }

    /// Tokens signed with the key in a file, which the start of the program reads: a
    /// [key set](Self::key_set), a public key as PEM, or a [secret](Self::hs256) without its final
    /// line break.
    pub fn key_file(file: impl AsRef<std::path::Path>) -> Self {
        let file = file.as_ref();
        let told = |fault: String| format!("{}: {fault}", file.display());
        let bytes = fs::read(file).map_err(|error| told(error.to_string()));
        Self::with(bytes.and_then(|bytes| TokenKey::of_any(&bytes).map_err(told)))
    }

    /// Also accepts tokens of `other`'s keys, for example during a key rotation. Keys of `other`
    /// without an issuer or audience get those of `self`.
    pub fn or(mut self, other: Self) -> Self {
        let first = self.keys.first().cloned();
        let (issuer, audience) = first.map(|own| (own.issuer, own.audience)).unwrap_or_default();
        self.keys.extend(other.keys.into_iter().map(|own| TrustedKey {
            issuer: own.issuer.or_else(|| issuer.clone()),
            audience: own.audience.or_else(|| audience.clone()),
            key: own.key,
        }));
        self.fault = self.fault.or(other.fault);
        self
    }

    /// Requires this value of `iss`.
    pub fn issuer(mut self, issuer: &str) -> Self {
        for own in &mut self.keys {
            own.issuer = Some(issuer.into());
        }
        self
    }

    /// Requires `aud` to be or to contain this value. Without this setting, tokens with an `aud`
    /// are rejected: they are for another recipient (RFC 7519 section 4.1.3).
    pub fn audience(mut self, audience: &str) -> Self {
        for own in &mut self.keys {
            own.audience = Some(audience.into());
        }
        self
    }

    /// Sets the cookie that may contain a token: `channels_token` by default.
    pub fn cookie(mut self, name: &str) -> Self {
        name.clone_into(&mut self.cookie);
        self
    }

    /// Sets the maximum time from `iat` to `exp` of a token: one year by default. The server
    /// remembers a revocation for the same time.
    pub fn max_lifetime(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Creates an invalid value that reports this error.
    pub(crate) fn wrong(fault: &str) -> Self {
        Self::with(Err(fault.to_owned()))
    }

    fn of(key: Result<TokenKey, String>) -> Self {
        Self::with(key.map(|key| vec![key]))
    }

    fn with(keys: Result<Vec<TokenKey>, String>) -> Self {
        let (keys, fault) = match keys {
            Ok(keys) => (keys.into_iter().map(TrustedKey::new).collect(), None),
            Err(fault) => (Vec::new(), Some(fault)),
        };
        let cookie = "channels_token".to_owned();
        Self { keys, cookie, longest: YEAR, fault }
    }

    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Validates a token at `now`, in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// The reason for the client why the token is invalid.
    pub(super) fn read(&self, token: &str, now: u64) -> Result<ValidatedToken, String> {
        let claims = self.claims(token)?;
        let exp = date(&claims, "exp")?.ok_or("it has no `exp`, when it ends")?;
        if exp <= now {
            return Err("it has ended; get another".to_owned());
        }
        if date(&claims, "nbf")?.is_some_and(|begins| begins > now + SKEW) {
            return Err("it has not begun".to_owned());
        }
        // Revocations need the time of issue.
        let issued = date(&claims, "iat")?.ok_or("it has no `iat`, when it was made")?;
        if issued > now + SKEW {
            return Err("it was made in the future".to_owned());
        }
        if exp.saturating_sub(issued) > self.longest.as_millis() as u64 {
            let most = self.longest.as_secs();
            return Err(format!(
                "it lasts longer than {most} seconds; make it shorter, or say more by TokenVerifier::max_lifetime"
            ));
        }
        let subject = claims["sub"].as_str().filter(|subject| !subject.is_empty());
        let subject = subject.ok_or("it has no `sub`, whose it is")?;
        UserName::parse(subject).map_err(|bad| format!("its `sub`: {bad}"))?;
        let grant = Grant { until: Some(exp), ..granted(&claims[CLAIM], subject)? };
        Ok(ValidatedToken { grant, issued })
    }

    /// Verifies the signature with the known keys (RFC 7515 section 5.2), and the issuer and
    /// audience.
    fn claims(&self, token: &str) -> Result<Value, String> {
        const FORM: &str = "it is no token: three parts of base64url with dots between";
        if token.len() > MAX_BYTES {
            return Err(format!("it is longer than {MAX_BYTES} bytes"));
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(FORM)?;
        let (head, claims) = signed.split_once('.').ok_or(FORM)?;
        let parts = (base64::url(head), base64::url(claims), base64::url(signature));
        let (Some(head), Some(claims), Some(signature)) = parts else {
            return Err(FORM.to_owned());
        };
        let head: Value =
            serde_json::from_slice(&head).map_err(|_| "its head is no JSON".to_owned())?;
        if !head["crit"].is_null() {
            return Err("it has `crit`, of which nothing is known here".to_owned());
        }
        let (algorithm, name) = (head["alg"].as_str().unwrap_or_default(), head["kid"].as_str());
        let mut fitting = self.keys.iter().filter(|own| own.key.fits(algorithm, name)).peekable();
        if fitting.peek().is_none() {
            let mut known: Vec<_> = self.keys.iter().map(|own| own.key.algorithm()).collect();
            known.dedup();
            let known = known.join(", ");
            return Err(format!("no key here is for what its head says; keys are for {known}"));
        }
        let mut fault = "its signature is wrong".to_owned();
        for own in fitting.filter(|own| own.key.has_signed(signed.as_bytes(), &signature)) {
            // Claims are parsed only after the signature was verified.
            let claims = serde_json::from_slice(&claims).map_err(|_| "its claims are no JSON")?;
            match own.check_parties(&claims) {
                Ok(()) => return Ok(claims),
                Err(wrong) => fault = wrong,
            }
        }
        Err(fault)
    }
}

impl TrustedKey {
    fn new(key: TokenKey) -> Self {
        Self { key: Arc::new(key), issuer: None, audience: None }
    }

    /// Checks the issuer and the audience.
    fn check_parties(&self, claims: &Value) -> Result<(), String> {
        if let Some(issuer) = &self.issuer
            && claims["iss"].as_str() != Some(issuer)
        {
            return Err(format!("its `iss` is not {issuer}"));
        }
        let is_for = |audience: &str| match &claims["aud"] {
            Value::Array(all) => all.iter().any(|one| one.as_str() == Some(audience)),
            one => one.as_str() == Some(audience),
        };
        match &self.audience {
            Some(audience) if !is_for(audience) => Err(format!("its `aud` is not {audience}")),
            None if !claims["aud"].is_null() => {
                Err("its `aud` is somebody else; TokenVerifier::audience says who this is"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// Reads a time claim (seconds since 1970, RFC 7519 section 2) as milliseconds.
fn date(claims: &Value, name: &str) -> Result<Option<u64>, String> {
    match &claims[name] {
        Value::Null => Ok(None),
        value => match value.as_f64() {
            Some(seconds) if (0.0..MAX_TIMESTAMP).contains(&seconds) => {
                Ok(Some(Duration::from_secs_f64(seconds).as_millis() as u64))
            }
            _ => Err(format!("its `{name}` is no time in seconds since 1970")),
        },
    }
}

/// Parses the claim with the grant.
fn granted(claim: &Value, subject: &str) -> Result<Grant, String> {
    const SHAPE: &str = "its `channels` is no object of arrays of names: {\"follow\": [..], \"publish\": [..], \"manage\": [..]}";
    let mut grant = Grant::to(subject);
    let members = match claim {
        Value::Null => return Ok(grant),
        claim => claim.as_object().ok_or(SHAPE)?,
    };
    for (name, patterns) in members {
        let actions = [ChannelAction::Follow, ChannelAction::Publish, ChannelAction::Manage];
        let action = actions.into_iter().find(|action| action.name() == name).ok_or(SHAPE)?;
        for pattern in patterns.as_array().ok_or(SHAPE)? {
            let pattern = Pattern::parse(pattern.as_str().ok_or(SHAPE)?);
            let pattern = pattern.map_err(|bad| format!("in its `channels`: {bad}"))?;
            grant = grant.with(action, pattern.into());
        }
    }
    match grant.fault() {
        Some(fault) => Err(format!("in its `channels`: {fault}")),
        None => Ok(grant),
    }
}

/// Fuzz target for tokens. An arbitrary text is rejected with a reason. Correctly signed claims
/// are accepted or rejected, with the same result each time.
#[doc(hidden)]
pub fn check_token(bytes: &[u8]) {
    const SECRET: &[u8] = b"thirty-two bytes or more of secret";
    const NOW: u64 = 1_800_000_000_000;
    let tokens = TokenVerifier::hs256(SECRET);
    assert!(tokens.fault().is_none());
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(tokens.read(text, NOW).is_err_and(|fault| !fault.is_empty()));
        let _ = TokenKey::of_set(text);
        let _ = (TokenKey::es256(text), TokenKey::eddsa(text), TokenKey::rs256(text));
    }
    let signed = signed(SECRET, bytes);
    let told = tokens.read(&signed, NOW).map(|taken| (taken.grant.until, taken.issued));
    if let Ok((until, issued)) = told {
        assert!(until.is_some_and(|until| until > NOW) && issued <= NOW + SKEW);
    }
    assert_eq!(tokens.read(&signed, NOW).is_ok(), told.is_ok());
}

/// Omits the keys, which are secret.
impl fmt::Debug for TokenVerifier {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithms: Vec<_> = self.keys.iter().map(|own| own.key.algorithm()).collect();
        to.debug_struct("TokenVerifier").field("algorithms", &algorithms).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
