//! Responses to the HTTP challenges of an authority (RFC 8555 section 8.3).

use std::sync::{Arc, PoisonError, RwLock};

/// The open challenges, by token. There are few: one for each host of the current order.
#[derive(Clone, Default)]
pub(super) struct Challenges(Arc<RwLock<Vec<(String, String)>>>);

/// An open challenge. Dropping it withdraws the response.
pub(super) struct OpenChallenge {
    challenges: Challenges,
    token: String,
}

/// The path at which an authority sends its requests.
const PATH: &str = "/.well-known/acme-challenge/";

impl Challenges {
    /// Answers requests for `token` with `proof`.
    pub(super) fn post(&self, token: &str, proof: &str) -> OpenChallenge {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.push((token.to_owned(), proof.to_owned()));
        OpenChallenge { challenges: self.clone(), token: token.to_owned() }
    }

    /// The response to a request for `target`, if it is one of the open challenges.
    pub(super) fn proof(&self, target: &str) -> Option<String> {
        let token = target.strip_prefix(PATH)?;
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(known, _)| known == token).map(|(_, proof)| proof.clone())
    }
}

impl Drop for OpenChallenge {
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
    fn answers_only_open_challenges() {
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
