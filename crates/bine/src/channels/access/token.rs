//! Decides which tokens are taken (JSON Web Tokens, RFC 7519), and what each gives.

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs};

use serde_json::Value;

use super::grant::{Action, Grant};
use super::key::Key;
use super::pattern::Pattern;
use super::sign::signed;
use crate::base64;
use crate::user_name::UserName;

/// Signed tokens, each with a grant of its own: whoever shows one may do what it says.
///
/// ```
/// use bine::channels::{Access, Tokens};
///
/// let secret = "one of at least thirty-two bytes, kept elsewhere";
/// let access = Access::none().tokens(Tokens::hs256(secret).issuer("https://login.example.org"));
/// # drop(access);
/// ```
///
/// A token is a JSON Web Token (RFC 7519). It has `sub`, whose it is, `iat`, when it was made, `exp`, when it ends, and
/// `channels`, an object of arrays `follow`, `publish` and `manage` of [patterns](super::Pattern). `nbf`, `aud` and
/// `iss` are checked where they are there. Which algorithm has signed it, the key says: a token cannot choose.
#[derive(Clone)]
#[must_use]
pub struct Tokens {
    keys: Vec<Trusted>,
    pub(super) cookie: String,
    pub(super) longest: Duration,
    fault: Option<String>,
}

/// A key, and of which tokens it is.
#[derive(Clone)]
struct Trusted {
    key: Arc<Key>,
    issuer: Option<Arc<str>>,
    audience: Option<Arc<str>>,
}

/// A token that was taken.
pub(super) struct Taken {
    pub(super) grant: Grant,
    /// When it was made, in milliseconds since 1970.
    pub(super) issued: u64,
}

/// Longer ones are not read.
const MOST: usize = 8 << 10;
/// What clocks may differ by, in milliseconds. The end of a token is not put off by it.
const SKEW: u64 = 60_000;
/// Seconds since 1970 beyond which no clock is right: 2^53 milliseconds.
const LAST: f64 = 9_007_199_254_740.0;
const YEAR: Duration = Duration::from_hours(366 * 24);
/// In a token, what it gives.
const CLAIM: &str = "channels";

impl Tokens {
    /// Signed with a secret that whoever makes them has too; at least 32 bytes.
    pub fn hs256(secret: impl AsRef<[u8]>) -> Self {
        Self::of(Key::hs256(secret.as_ref()))
    }

    /// Signed on the curve P-256; `pem` is the public key.
    pub fn es256(pem: &str) -> Self {
        Self::of(Key::es256(pem))
    }

    /// Signed by Ed25519 (RFC 8037); `pem` is the public key.
    pub fn eddsa(pem: &str) -> Self {
        Self::of(Key::eddsa(pem))
    }

    /// Signed by RSA with SHA-256; `pem` is the public key, of at least 2048 bits.
    pub fn rs256(pem: &str) -> Self {
        Self::of(Key::rs256(pem))
    }

    /// Signed with one of a set of keys (JWKS, RFC 7517), which is read from a file when the program starts.
    pub fn key_set(file: impl AsRef<std::path::Path>) -> Self {
        let file = file.as_ref();
        let told = |fault: String| format!("{}: {fault}", file.display());
        let json = fs::read_to_string(file).map_err(|error| told(error.to_string()));
        let keys = json.and_then(|json| Key::of_set(&json).map_err(told));
        Self::with(keys)
    }

    /// Signed with what a file holds, which is read when the program starts: a [set of keys](Self::key_set), one public key
    /// as PEM, or a [secret](Self::hs256), the end of whose line is none of it.
    pub fn key_file(file: impl AsRef<std::path::Path>) -> Self {
        let file = file.as_ref();
        let told = |fault: String| format!("{}: {fault}", file.display());
        let bytes = fs::read(file).map_err(|error| told(error.to_string()));
        Self::with(bytes.and_then(|bytes| Key::of_any(&bytes).map_err(told)))
    }

    /// Those of `other`'s keys too, as while one takes the place of another. The issuer and the audience that `other` says
    /// hold for its keys; where it says none, those that are said here do.
    pub fn or(mut self, other: Self) -> Self {
        let first = self.keys.first().cloned();
        let (issuer, audience) = first.map(|own| (own.issuer, own.audience)).unwrap_or_default();
        self.keys.extend(other.keys.into_iter().map(|own| Trusted {
            issuer: own.issuer.or_else(|| issuer.clone()),
            audience: own.audience.or_else(|| audience.clone()),
            key: own.key,
        }));
        self.fault = self.fault.or(other.fault);
        self
    }

    /// Only those whose `iss` says this.
    pub fn issuer(mut self, issuer: &str) -> Self {
        for own in &mut self.keys {
            own.issuer = Some(issuer.into());
        }
        self
    }

    /// Only those whose `aud` says this, or this among others. Where it is not said, a token that is for somebody
    /// (RFC 7519 section 4.1.3) is for somebody else.
    pub fn audience(mut self, audience: &str) -> Self {
        for own in &mut self.keys {
            own.audience = Some(audience.into());
        }
        self
    }

    /// The cookie in which a browser may bring one: `channels_token` unless said.
    pub fn cookie(mut self, name: &str) -> Self {
        name.clone_into(&mut self.cookie);
        self
    }

    /// From its `iat` to its `exp` a token may last so long, a year unless said; that someone's were revoked is remembered for
    /// as long.
    pub fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// None, since this is wrong.
    pub(crate) fn wrong(fault: &str) -> Self {
        Self::with(Err(fault.to_owned()))
    }

    fn of(key: Result<Key, String>) -> Self {
        Self::with(key.map(|key| vec![key]))
    }

    fn with(keys: Result<Vec<Key>, String>) -> Self {
        let (keys, fault) = match keys {
            Ok(keys) => (keys.into_iter().map(Trusted::new).collect(), None),
            Err(fault) => (Vec::new(), Some(fault)),
        };
        let cookie = "channels_token".to_owned();
        Self { keys, cookie, longest: YEAR, fault }
    }

    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// What a token gives at `now`, in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// Why it is not taken, for whoever shows it.
    pub(super) fn read(&self, token: &str, now: u64) -> Result<Taken, String> {
        let claims = self.claims(token)?;
        let exp = date(&claims, "exp")?.ok_or("it has no `exp`, when it ends")?;
        if exp <= now {
            return Err("it has ended; get another".to_owned());
        }
        if date(&claims, "nbf")?.is_some_and(|begins| begins > now + SKEW) {
            return Err("it has not begun".to_owned());
        }
        // Whether it was made before its subject was revoked, nothing else says.
        let issued = date(&claims, "iat")?.ok_or("it has no `iat`, when it was made")?;
        if issued > now + SKEW {
            return Err("it was made in the future".to_owned());
        }
        if exp.saturating_sub(issued) > self.longest.as_millis() as u64 {
            let most = self.longest.as_secs();
            return Err(format!(
                "it lasts longer than {most} seconds; make it shorter, or say more by Tokens::longest"
            ));
        }
        let subject = claims["sub"].as_str().filter(|subject| !subject.is_empty());
        let subject = subject.ok_or("it has no `sub`, whose it is")?;
        UserName::parse(subject).map_err(|bad| format!("its `sub`: {bad}"))?;
        let grant = Grant { until: Some(exp), ..granted(&claims[CLAIM], subject)? };
        Ok(Taken { grant, issued })
    }

    /// What is said in a token that one of the keys has signed (RFC 7515 section 5.2) and is for.
    fn claims(&self, token: &str) -> Result<Value, String> {
        const FORM: &str = "it is no token: three parts of base64url with dots between";
        if token.len() > MOST {
            return Err(format!("it is longer than {MOST} bytes"));
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
            // Before the signature was right, nothing of this was looked at.
            let claims = serde_json::from_slice(&claims).map_err(|_| "its claims are no JSON")?;
            match own.check_parties(&claims) {
                Ok(()) => return Ok(claims),
                Err(wrong) => fault = wrong,
            }
        }
        Err(fault)
    }
}

impl Trusted {
    fn new(key: Key) -> Self {
        Self { key: Arc::new(key), issuer: None, audience: None }
    }

    /// From whom, and for whom it is.
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
                Err("its `aud` is somebody else; Tokens::audience says who this is".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// A time, which claims say in seconds since 1970 (RFC 7519 section 2), in milliseconds.
fn date(claims: &Value, name: &str) -> Result<Option<u64>, String> {
    match &claims[name] {
        Value::Null => Ok(None),
        value => match value.as_f64() {
            Some(seconds) if (0.0..LAST).contains(&seconds) => {
                Ok(Some(Duration::from_secs_f64(seconds).as_millis() as u64))
            }
            _ => Err(format!("its `{name}` is no time in seconds since 1970")),
        },
    }
}

/// What a claim gives to a subject.
fn granted(claim: &Value, subject: &str) -> Result<Grant, String> {
    const SHAPE: &str = "its `channels` is no object of arrays of names: {\"follow\": [..], \"publish\": [..], \"manage\": [..]}";
    let mut grant = Grant::to(subject);
    let members = match claim {
        Value::Null => return Ok(grant),
        claim => claim.as_object().ok_or(SHAPE)?,
    };
    for (name, patterns) in members {
        let actions = [Action::Follow, Action::Publish, Action::Manage];
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

/// What must hold of any text that is shown as a token, for whoever searches for one of which it does not: it is refused
/// with a reason, and the same claims rightly signed are taken or refused, each time alike.
#[doc(hidden)]
pub fn check_token(bytes: &[u8]) {
    const SECRET: &[u8] = b"thirty-two bytes or more of secret";
    const NOW: u64 = 1_800_000_000_000;
    let tokens = Tokens::hs256(SECRET);
    assert!(tokens.fault().is_none());
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(tokens.read(text, NOW).is_err_and(|fault| !fault.is_empty()));
        let _ = Key::of_set(text);
        let _ = (Key::es256(text), Key::eddsa(text), Key::rs256(text));
    }
    let signed = signed(SECRET, bytes);
    let told = tokens.read(&signed, NOW).map(|taken| (taken.grant.until, taken.issued));
    if let Ok((until, issued)) = told {
        assert!(until.is_some_and(|until| until > NOW) && issued <= NOW + SKEW);
    }
    assert_eq!(tokens.read(&signed, NOW).is_ok(), told.is_ok());
}

/// Its keys are nobody's business.
impl fmt::Debug for Tokens {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithms: Vec<_> = self.keys.iter().map(|own| own.key.algorithm()).collect();
        to.debug_struct("Tokens").field("algorithms", &algorithms).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
