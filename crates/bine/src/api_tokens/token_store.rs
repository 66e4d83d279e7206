//! Finds the tokens of requests in the table.

use std::sync::{Arc, OnceLock};

use ring::digest;

use super::token_row::TokenRow;
use crate::credentials::{CredentialLogin, CredentialSource, TOKEN_PREFIX};
use crate::store::{Id, RowId, Store, Time};

/// The characters of a token: the prefix and 192 bits as Base64.
const LENGTH: usize = TOKEN_PREFIX.len() + 32;
/// Seconds after which the server records the use of a token again.
const USE_INTERVAL: u64 = 60 * 60;

/// The table of tokens, once it is open.
#[derive(Default)]
pub(super) struct TokenStore(OnceLock<Store>);

impl TokenStore {
    pub(super) fn open(&self, store: &Store) {
        // The program starts once, so the cell is empty.
        let _ = self.0.set(store.clone());
    }

    pub(super) fn opened(&self) -> Option<&Store> {
        self.0.get()
    }

    pub(super) fn find_at(&self, secret: &str, now: u64) -> Option<CredentialLogin> {
        if secret.len() != LENGTH {
            return None;
        }
        // An attacker who measures the search of the index learns about hashes, not about tokens.
        let hash = hash_of(secret);
        let row = self.0.get()?.read().without_tracking().one(TokenRow::BY_HASH, hash.to_vec())?;
        (row.expires.unix() > now).then(|| CredentialLogin {
            scope: Arc::new(row.scope()),
            row: row.id.row(),
            until: row.expires.unix(),
            session: session_of(&hash),
            last_used: row.last_used.map_or(0, Time::unix),
            user: row.user,
        })
    }
}

impl CredentialSource for TokenStore {
    fn find(&self, secret: &str, now: u64) -> Option<CredentialLogin> {
        self.find_at(secret, now)
    }

    fn lasts(&self, row: RowId) -> Option<u64> {
        let row = self.0.get()?.read().without_tracking().get(Id::<TokenRow>::of(row))?;
        Some(row.expires.unix())
    }

    /// Does not wait for the commit: the time of the last use may be lost in a crash.
    fn record_use(&self, login: &CredentialLogin, now: u64) {
        let Some(store) = self.0.get() else { return };
        if now.saturating_sub(login.last_used) < USE_INTERVAL {
            return;
        }
        let mut change = store.begin();
        let time = Time(i64::try_from(now.saturating_mul(1_000_000)).unwrap_or(i64::MAX));
        let id = Id::<TokenRow>::of(login.row);
        if change.update(id, |row: &mut TokenRow| row.last_used = Some(time)).is_ok() {
            // After a conflict, a concurrent request has recorded it, or the token was revoked.
            let _ = store.commit(change);
        }
    }
}

/// The stored hash of a token.
pub(super) fn hash_of(secret: &str) -> [u8; 32] {
    let digest = digest::digest(&digest::SHA256, secret.as_bytes());
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The id of the session of a token. The token's hash cannot be derived from it.
fn session_of(hash: &[u8; 32]) -> [u8; 16] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(b"bine session of an API token\0");
    context.update(hash);
    *context.finish().as_ref().first_chunk().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::super::{NewApiToken, create};
    use super::*;
    use crate::audit;
    use crate::store::{Options, Transaction};

    const DAY: u64 = 24 * 60 * 60;

    /// Waits until earlier commits are visible: later ones are never visible before them.
    fn settle(store: &Store) {
        let write = |change: &mut Transaction| audit::record(change, "test", "settle", "", "");
        store.change(write).wait().unwrap();
    }

    #[test]
    fn token_expires_at_its_second_and_use_is_recorded_once_an_hour() {
        let store = Store::in_memory(audit::declare(Options::new().table::<TokenRow>())).unwrap();
        let tokens = TokenStore::default();
        tokens.open(&store);
        let wanted = NewApiToken::new("test").expires_in_days(2);
        let made = store
            .change(move |change: &mut Transaction| create(change, &"ann".into(), &wanted, "ann"))
            .wait()
            .unwrap();
        let end = made.token.expires.unix();
        assert!(tokens.find_at(&made.secret, end).is_none());
        let found = tokens.find_at(&made.secret, end - 1).unwrap();
        assert_eq!((&*found.user, found.until, found.last_used), ("ann", end, 0));
        assert_eq!(tokens.lasts(found.row), Some(end));
        // A device that is switched off for a day does not shift the expiry.
        let later = end - DAY;
        tokens.record_use(&found, later);
        settle(&store);
        let found = tokens.find_at(&made.secret, later).unwrap();
        assert_eq!(found.last_used, later);
        for (at, expected) in [(later + 3599, later), (later + 3600, later + 3600)] {
            tokens.record_use(&found, at);
            settle(&store);
            assert_eq!(tokens.find_at(&made.secret, later).unwrap().last_used, expected);
        }
        // The session of a token is not its hash, and differs between tokens.
        assert_ne!(found.session[..], hash_of(&made.secret)[..16]);
        assert_ne!(found.session, session_of(&hash_of("bine_other")));
    }
}
