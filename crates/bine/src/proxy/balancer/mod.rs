//! Policies that choose an origin for a request.

mod least_outstanding;
mod round_robin;
mod two_choices;

use std::net::IpAddr;

use bine_http::{Head, Method};

pub use least_outstanding::LeastOutstanding;
pub use round_robin::RoundRobin;
pub use two_choices::TwoChoices;

/// Chooses an origin for each request of a proxy. All threads share a policy.
pub trait BalancePolicy: Send + Sync + 'static {
    /// Returns the place of the chosen origin in `candidates`, which is not empty. A place beyond the
    /// end counts as the last one.
    fn choose(&self, candidates: &[OriginCandidate<'_>], request: &BalancedRequest<'_>) -> usize;
}

/// An origin that may get the request: it is neither resting nor down, and has not failed for this
/// request.
#[derive(Clone, Copy, Debug)]
pub struct OriginCandidate<'o> {
    /// Its place among all origins of the rule, which is the same for all requests.
    pub index: usize,
    /// Its address, as `http://127.0.0.1:9000`.
    pub address: &'o str,
    /// Its share of the requests relative to others: the configured weight, or less in its slow
    /// start. Greater than 0.
    pub weight: f64,
    /// The requests of this server that it answers now.
    pub outstanding: usize,
}

/// The request for which an origin is chosen.
#[derive(Clone, Copy, Debug)]
pub struct BalancedRequest<'r> {
    pub(super) head: Head<'r>,
    pub(super) path: &'r str,
    pub(super) client: Option<IpAddr>,
}

impl<'r> BalancedRequest<'r> {
    /// The method.
    pub const fn method(&self) -> Method {
        self.head.method()
    }

    /// The decoded path.
    pub const fn path(&self) -> &'r str {
        self.path
    }

    /// The address of the client; `None`: it is connected by a Unix socket.
    pub const fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// The value of the first field with this name, if it is UTF-8. The name is case-insensitive.
    pub fn field(&self, name: &str) -> Option<&'r str> {
        self.head.field_text(name)
    }
}

impl OriginCandidate<'_> {
    /// The requests that it would answer with this one, relative to its weight.
    fn load(&self) -> f64 {
        (self.outstanding + 1) as f64 / self.weight
    }
}

#[cfg(test)]
mod tests {
    use bine_http::{Event, Limits, RequestParser};

    use super::*;

    /// How often `policy` chooses each of the origins with these weights and outstanding requests,
    /// in a thousand requests.
    fn shares<const N: usize>(
        policy: &dyn BalancePolicy,
        origins: [(f64, usize); N],
    ) -> [usize; N] {
        let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut parser = RequestParser::new();
        let Event::Head(head) = parser.receive(bytes, &Limits::default()).event else {
            panic!("it is a request");
        };
        let request = BalancedRequest { head, path: "/", client: None };
        let candidate = |(index, (weight, outstanding))| OriginCandidate {
            index,
            address: "",
            weight,
            outstanding,
        };
        let candidates: Vec<_> = origins.into_iter().enumerate().map(candidate).collect();
        let mut shares = [0; N];
        for _ in 0..1000 {
            shares[policy.choose(&candidates, &request)] += 1;
        }
        shares
    }

    #[test]
    fn round_robin_follows_the_weights() {
        let policy = RoundRobin::default();
        assert_eq!(shares(&policy, [(1.0, 9), (1.0, 0)]), [500, 500]);
        assert_eq!(shares(&RoundRobin::default(), [(3.0, 0), (1.0, 0), (1.0, 0)]), [600, 200, 200]);
    }

    #[test]
    fn least_outstanding_prefers_the_idle_origin_and_rotates_among_equals() {
        let policy = LeastOutstanding::default();
        assert_eq!(shares(&policy, [(1.0, 2), (1.0, 1), (1.0, 2)]), [0, 1000, 0]);
        assert_eq!(shares(&policy, [(1.0, 1), (1.0, 1)]), [500, 500]);
        assert_eq!(shares(&policy, [(1.0, 1), (4.0, 3)]), [0, 1000], "four of four against two");
    }

    #[test]
    fn two_choices_avoid_the_busiest_origin_and_use_all_others() {
        let shares = shares(&TwoChoices::default(), [(1.0, 9), (1.0, 1), (1.0, 1), (1.0, 1)]);
        assert_eq!(shares[0], 0, "each pair has a better one: {shares:?}");
        assert!(shares[1..].iter().all(|share| (200..500).contains(share)), "{shares:?}");
    }
}
