//! Decides what is answered to an authority that asks whether a host is ours (RFC 8555 section 8.3).

use std::sync::{Arc, PoisonError, RwLock};

/// The proofs that are asked for just now, by token. Few: one for each host of the certificate under way.
#[derive(Clone, Default)]
pub(super) struct Challenges(Arc<RwLock<Vec<(String, String)>>>);

/// A proof that can be asked for until this goes.
pub(super) struct Posted {
    challenges: Challenges,
    token: String,
}

/// Where an authority asks.
const FOLDER: &str = "/.well-known/acme-challenge/";

impl Challenges {
    /// Answers to `token` with `proof`.
    pub(super) fn post(&self, token: &str, proof: &str) -> Posted {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.push((token.to_owned(), proof.to_owned()));
        Posted { challenges: self.clone(), token: token.to_owned() }
    }

    /// The proof that a request for `target` asks for, if it is one of ours.
    pub(super) fn proof(&self, target: &str) -> Option<String> {
        let token = target.strip_prefix(FOLDER)?;
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(known, _)| known == token).map(|(_, proof)| proof.clone())
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        let mut known = self.challenges.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = known.iter().position(|(token, _)| *token == self.token) {
            known.swap_remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_given_while_it_is_posted_and_to_its_token_alone() {
        let challenges = Challenges::default();
        let posted = challenges.post("one", "one.key");
        let _other = challenges.post("two", "two.key");
        let proof = |target: &str| challenges.proof(target);
        assert_eq!(proof("/.well-known/acme-challenge/one").as_deref(), Some("one.key"));
        for other in ["/one", "/.well-known/acme-challenge/", "/.well-known/acme-challenge/one/"] {
            assert_eq!(proof(other), None, "{other}");
        }
        drop(posted);
        assert_eq!(proof("/.well-known/acme-challenge/one"), None);
        assert_eq!(proof("/.well-known/acme-challenge/two").as_deref(), Some("two.key"));
    }
}
