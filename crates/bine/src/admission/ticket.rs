//! Admission tickets: the cookie that identifies an admitted session (docs/formats/ticket.md). The
//! server keeps no state for it, so tickets stay valid after a restart.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use bine_admission::PresentedTicket;
use bine_http::Head;
use bine_server::ClientAddress;
use ring::hmac;

use crate::base64;
use crate::sessions::keys::{KeyName, Keys, SessionKey};
use crate::sessions::{MAX_COOKIES, SessionStore};

/// Issues and verifies tickets.
pub(super) struct Tickets {
    /// The program's sessions, whose keys sign the tickets.
    sessions: Option<Arc<SessionStore>>,
    own: OnceLock<Keys>,
}

/// The content of a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ticket {
    session: u64,
    /// Whether it is valid for an account at any address. Otherwise it is valid for one
    /// neighborhood.
    is_account: bool,
    /// Hours since 1970 when it was issued.
    hour: u32,
}

/// A verified ticket, and whether a new one is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reading {
    pub(super) shown: PresentedTicket,
    pub(super) is_due: bool,
}

/// The client that presents a ticket.
#[derive(Clone, Copy)]
pub(super) struct Holder<'h> {
    pub(super) peer: ClientAddress,
    /// The user's name, after a login.
    pub(super) user: Option<&'h str>,
    /// The current time, in seconds since 1970.
    pub(super) now: u64,
}

const VERSION: u8 = 1;
/// The signed part: version, kind, hour, key name, session.
const SIGNED: usize = 18;
/// Bytes of the HMAC-SHA-256: 144 bits, so that base64 needs no padding.
const SIGNATURE: usize = 18;
const LENGTH: usize = SIGNED + SIGNATURE;
const TEXT_LENGTH: usize = LENGTH / 3 * 4;
const HOUR: u64 = 3600;
/// Hours for which a ticket is valid, including the hour in which it was issued.
const VALID_HOURS: u32 = 2;

impl Tickets {
    /// Creates the tickets of a program that may have sessions.
    pub(super) const fn new(sessions: Option<Arc<SessionStore>>) -> Self {
        Self { sessions, own: OnceLock::new() }
    }

    /// Verifies the ticket of a request.
    pub(super) fn read(&self, head: &Head<'_>, holder: Holder<'_>) -> Reading {
        let fields = head.fields().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        let pairs = fields
            .filter_map(|(_, value)| str::from_utf8(value).ok())
            .flat_map(|field| field.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let name = cookie_name(holder.peer.is_secure());
        let own = pairs.filter(|(key, _)| *key == name).take(MAX_COOKIES);
        let keys = self.keys(holder.now);
        let read = own.map(|(_, value)| Ticket::read(value, keys, holder));
        // The best of several: a different program on this host may have set one too.
        read.reduce(|best, next| if rank(best.shown) >= rank(next.shown) { best } else { next })
            .unwrap_or_default()
    }

    /// A number for a user's account, equal in all its logins.
    pub(super) fn account(&self, user: &str, now: u64) -> u64 {
        self.keys(now).newest(now, |key| account(key, user))
    }

    /// The header line that sets a cookie with a ticket of this session.
    pub(super) fn line(&self, session: u64, holder: Holder<'_>) -> String {
        let Holder { peer, user, now } = holder;
        let ticket = Ticket { session, is_account: user.is_some(), hour: hour(now) };
        let text = ticket.text(self.keys(now), holder);
        let (name, age) = (cookie_name(peer.is_secure()), u64::from(VALID_HOURS) * HOUR);
        let secure = if peer.is_secure() { "; Secure" } else { "" };
        format!(
            "Set-Cookie: {name}={text}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}\r\n"
        )
    }

    /// The keys of the sessions, once these are open. Without sessions, tickets are valid until the
    /// program ends.
    fn keys(&self, now: u64) -> &Keys {
        let keys = self.sessions.as_ref().and_then(|keeper| keeper.keys());
        match keys {
            Some(keys) => keys,
            None => self.own.get_or_init(|| Keys::in_memory(now, u64::from(VALID_HOURS) * HOUR)),
        }
    }
}

const fn rank(shown: PresentedTicket) -> u8 {
    match shown {
        PresentedTicket::None | PresentedTicket::Invalid => 0,
        PresentedTicket::Expired(_) => 1,
        PresentedTicket::Valid(_) => 2,
    }
}

impl Ticket {
    fn text(self, keys: &Keys, holder: Holder<'_>) -> String {
        keys.newest(holder.now, |key| {
            let mut bytes = [0; LENGTH];
            bytes[..2].copy_from_slice(&[VERSION, u8::from(self.is_account)]);
            bytes[2..6].copy_from_slice(&self.hour.to_be_bytes());
            bytes[6..10].copy_from_slice(&key.name);
            bytes[10..SIGNED].copy_from_slice(&self.session.to_be_bytes());
            let (signed, signature) = bytes.split_at_mut(SIGNED);
            signature.copy_from_slice(&self.sign(key, signed, holder.peer));
            base64::written(&bytes)
        })
    }

    fn read(text: &str, keys: &Keys, holder: Holder<'_>) -> Reading {
        let foreign = Reading { shown: PresentedTicket::Invalid, is_due: false };
        Self::verify(text, keys, holder).unwrap_or(foreign)
    }

    /// `None`: the ticket is invalid, or belongs to a different client.
    fn verify(text: &str, keys: &Keys, holder: Holder<'_>) -> Option<Reading> {
        if text.len() != TEXT_LENGTH {
            return None;
        }
        let bytes: [u8; LENGTH] = base64::url(text)?.try_into().ok()?;
        let (signed, signature) = bytes.split_first_chunk::<SIGNED>()?;
        let is_account = match signed[..2] {
            [VERSION, 0] => false,
            [VERSION, 1] => true,
            _ => return None,
        };
        let given = u32::from_be_bytes(*signed[2..].first_chunk()?);
        let name: KeyName = *signed[6..].first_chunk()?;
        let session = u64::from_be_bytes(*signed[10..].first_chunk()?);
        let own = Self { session, is_account, hour: given };
        keys.find(name, holder.now, |key| {
            let expected = own.sign(key, signed, holder.peer);
            // In constant time: the comparison must not reveal the signature.
            let differs = expected.iter().zip(signature).fold(0, |all, (a, b)| all | (a ^ b));
            let is_theirs =
                || !is_account || holder.user.is_some_and(|user| account(key, user) == session);
            (differs == 0 && is_theirs()).then_some(())
        })?;
        let now = hour(holder.now);
        // A ticket of the next hour is valid, since clocks may differ a little.
        let is_good = given <= now.saturating_add(1) && now < given.saturating_add(VALID_HOURS);
        let shown = if is_good {
            PresentedTicket::Valid(session)
        } else {
            PresentedTicket::Expired(session)
        };
        // After a login, the client gets an account ticket.
        Some(Reading { shown, is_due: given != now || is_account != holder.user.is_some() })
    }

    fn sign(self, key: &SessionKey, signed: &[u8], peer: ClientAddress) -> [u8; SIGNATURE] {
        let mut context = hmac::Context::with_key(&key.tickets);
        context.update(signed);
        if !self.is_account {
            context.update(&neighborhood(peer));
        }
        let signature = context.sign();
        *signature.as_ref().first_chunk().expect("an HMAC of SHA-256 has 32 bytes")
    }
}

/// The network of a household or office, which stays equal when addresses change: 24 bits of an
/// IPv4 address, 56 of an IPv6 one.
fn neighborhood(peer: ClientAddress) -> [u8; 8] {
    let mut bytes = [0; 8];
    match peer.ip() {
        Some(IpAddr::V4(ip)) => {
            bytes[0] = 4;
            bytes[1..4].copy_from_slice(&ip.octets()[..3]);
        }
        Some(IpAddr::V6(ip)) => {
            bytes[0] = 6;
            bytes[1..].copy_from_slice(&ip.octets()[..7]);
        }
        None => {}
    }
    bytes
}

fn account(key: &SessionKey, user: &str) -> u64 {
    let signed = hmac::sign(&key.tickets, &[b"account ", user.as_bytes()].concat());
    u64::from_be_bytes(*signed.as_ref().first_chunk().expect("an HMAC of SHA-256 has 32 bytes"))
}

const fn hour(seconds: u64) -> u32 {
    (seconds / HOUR) as u32
}

/// With TLS, browsers reject the cookie from other hosts. See the session's cookie.
const fn cookie_name(is_secure: bool) -> &'static str {
    if is_secure { "__Host-ticket" } else { "ticket" }
}

/// Asserts that no text is accepted as a ticket, unless it is the one that was issued.
#[doc(hidden)]
pub fn check_ticket(text: &str) {
    let keys = Keys::in_memory(0, 1000);
    for user in [None, Some("ann")] {
        let holder = Holder { peer: ClientAddress::tcp(([192, 0, 2, 1], 80).into()), user, now: 0 };
        let session = user.map_or(7, |user| keys.newest(0, |key| account(key, user)));
        let own = Ticket { session, is_account: user.is_some(), hour: 0 }.text(&keys, holder);
        let is_believed =
            |text: &str| Ticket::read(text, &keys, holder).shown != PresentedTicket::Invalid;
        assert_eq!(Ticket::read(&own, &keys, holder).shown, PresentedTicket::Valid(session));
        assert!(!is_believed(text));
        // Mixes characters of the text into a valid ticket.
        let mut mixed = own.clone().into_bytes();
        for (place, letter) in text.bytes().take(TEXT_LENGTH).enumerate() {
            if letter != 0 && letter.is_ascii() {
                mixed[place] = letter;
            }
        }
        let mixed = String::from_utf8_lossy(&mixed);
        assert_eq!(is_believed(&mixed), mixed == own);
        let cut = own.get(text.len() % TEXT_LENGTH..).unwrap_or_default();
        assert_eq!(is_believed(cut), cut == own);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 500_000 * HOUR;

    fn at(address: &str) -> Holder<'static> {
        let peer = ClientAddress::tcp(format!("{address}:80").parse().unwrap());
        Holder { peer, user: None, now: NOW }
    }

    fn given(keys: &Keys, session: u64, holder: Holder<'_>) -> String {
        let hour = hour(holder.now);
        Ticket { session, is_account: holder.user.is_some(), hour }.text(keys, holder)
    }

    fn shown(text: &str, keys: &Keys, holder: Holder<'_>) -> PresentedTicket {
        Ticket::read(text, keys, holder).shown
    }

    fn keys() -> Keys {
        Keys::in_memory(NOW, 90 * 86_400)
    }

    #[test]
    fn ticket_is_valid_in_its_neighborhood_for_two_hours() {
        let keys = keys();
        let text = given(&keys, 7, at("192.0.2.1"));
        assert_eq!(shown(&text, &keys, at("192.0.2.77")), PresentedTicket::Valid(7));
        assert_eq!(shown(&text, &keys, at("192.0.3.1")), PresentedTicket::Invalid);
        let later = |hours| Holder { now: NOW + hours * HOUR, ..at("192.0.2.1") };
        assert!(!Ticket::read(&text, &keys, later(0)).is_due);
        assert!(Ticket::read(&text, &keys, later(1)).is_due);
        assert_eq!(shown(&text, &keys, later(1)), PresentedTicket::Valid(7));
        assert_eq!(shown(&text, &keys, later(2)), PresentedTicket::Expired(7));
        let v6 = given(&keys, 8, at("[2001:db8:1:200::1]"));
        assert_eq!(shown(&v6, &keys, at("[2001:db8:1:2ff::9]")), PresentedTicket::Valid(8));
        assert_eq!(shown(&v6, &keys, at("[2001:db8:1:300::1]")), PresentedTicket::Invalid);
    }

    #[test]
    fn account_ticket_is_valid_at_any_address() {
        let keys = keys();
        let ann = |address| Holder { user: Some("ann"), ..at(address) };
        let session = keys.newest(NOW, |key| account(key, "ann"));
        let text = given(&keys, session, ann("192.0.2.1"));
        assert_eq!(shown(&text, &keys, ann("198.51.100.1")), PresentedTicket::Valid(session));
        assert_eq!(shown(&text, &keys, at("192.0.2.1")), PresentedTicket::Invalid);
        let bob = Holder { user: Some("bob"), ..at("192.0.2.1") };
        assert_eq!(shown(&text, &keys, bob), PresentedTicket::Invalid);
    }

    #[test]
    fn login_makes_new_ticket_due() {
        let keys = keys();
        let text = given(&keys, 7, at("192.0.2.1"));
        let ann = Holder { user: Some("ann"), ..at("192.0.2.1") };
        let reading = Ticket::read(&text, &keys, ann);
        assert_eq!((reading.shown, reading.is_due), (PresentedTicket::Valid(7), true));
    }

    #[test]
    fn rejects_changed_ticket_and_ticket_of_other_program() {
        let (keys, holder) = (keys(), at("192.0.2.1"));
        let text = given(&keys, 7, holder);
        assert_eq!(text.len(), TEXT_LENGTH);
        assert_eq!(shown(&text, &self::keys(), holder), PresentedTicket::Invalid);
        let own = base64::url(&text).unwrap();
        for bit in 0..LENGTH * 8 {
            let mut changed = own.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let changed = base64::written(&changed);
            assert_eq!(shown(&changed, &keys, holder), PresentedTicket::Invalid, "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn rejects_arbitrary_text_as_ticket(text in "\\PC{0,80}", letters in "[A-Za-z0-9_-]{48}") {
            check_ticket(&text);
            check_ticket(&letters);
        }

        #[test]
        fn accepts_issued_ticket(session: u64, hours in 0u64..1_000_000) {
            let keys = Keys::in_memory(hours * HOUR, 90 * 86_400);
            let holder = Holder { now: hours * HOUR, ..at("192.0.2.1") };
            prop_assert_eq!(shown(&given(&keys, session, holder), &keys, holder), PresentedTicket::Valid(session));
        }
    }
}
