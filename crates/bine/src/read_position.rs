//! Reads that follow a client's own changes, on several nodes.
//!
//! The response to a request that may change data has the position of the newest commit of its node. A
//! later request of the same client has this position, and a node that has not applied that commit yet
//! waits for it before it calls the handler.

use std::sync::Arc;
use std::time::Duration;

use bine_http::Head;
use bine_server::AddressBlock;
use tokio::sync::watch;

use crate::client_places::{ClientPlace, ClientPlaces};
use crate::position::Position;
use crate::staleness::Staleness;
use crate::store::Store;

/// The positions of one node.
pub(crate) struct ReadPositions {
    applied: watch::Sender<Applied>,
    /// Identifies the stream, see [`Position`].
    order: u32,
    /// The requests and calls that wait.
    waiting: Arc<ClientPlaces>,
}

/// What this node has applied.
#[derive(Clone, Copy, Default)]
struct Applied {
    /// The sequence of the last commit of rows. All nodes count commits alike.
    sequence: u64,
    /// Whether the node is cut off, so that a wait would be in vain.
    is_stale: bool,
}

/// The place of a waiting request or call. Dropping it frees the place.
pub(crate) struct WaitPlace {
    positions: Arc<ReadPositions>,
    _place: ClientPlace,
}

/// How a wait has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waited {
    Applied,
    CutOff,
    TimedOut,
}

/// The field with a position, in requests and responses.
const FIELD: &str = "Bine-Position";
/// The cookie with a position.
const COOKIE: &str = "bine-position";
/// Seconds that a browser keeps the cookie. A node that lags further is cut off, and says so.
const COOKIE_AGE: u32 = 10;
/// The longest wait of a request.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(5);
/// Requests and calls that wait at one time. Further requests run without a wait.
const MAX_WAITING: usize = 512;
/// Requests of one address block that wait at one time. All clients of a load balancer are in one.
const MAX_WAITING_PER_BLOCK: usize = 256;
/// The longest body of a request that may wait, because a copy waits with it.
pub(crate) const MAX_WAITING_BODY: u64 = 64 << 10;

impl ReadPositions {
    /// Follows the commits of a store, whose stream `stream_id` identifies.
    #[cfg_attr(
        not(feature = "cluster"),
        allow(dead_code, reason = "only nodes of a cluster use it")
    )]
    pub(crate) fn new(store: &Store, staleness: &Staleness, stream_id: u64) -> Arc<Self> {
        let applied = watch::Sender::new(Applied::default());
        let commits = applied.clone();
        store.observe(move |changes| {
            commits.send_modify(|applied| {
                applied.sequence = applied.sequence.max(changes.sequence);
            });
        });
        let links = applied.clone();
        staleness.observe(Box::new(move |is_stale| {
            links.send_modify(|applied| applied.is_stale = is_stale);
        }));
        // After the observer is registered, so that no commit is missed.
        let sequence = store.read().without_tracking().sequence();
        applied.send_modify(|applied| applied.sequence = applied.sequence.max(sequence));
        // The time of a creation in nanoseconds: its low half differs by chance, the high half by years.
        let order = (stream_id ^ (stream_id >> 32)) as u32;
        Arc::new(Self { applied, order, waiting: Arc::default() })
    }

    /// The position of the newest commit that this node has applied.
    pub(crate) fn current(&self) -> Position {
        Position { sequence: self.applied.borrow().sequence, order: self.order }
    }

    /// The position that a request names, if this node has not applied it yet. One of another stream
    /// counts as none.
    pub(crate) fn missing(&self, head: &Head<'_>) -> Option<Position> {
        let field = head.field_text(FIELD).and_then(|text| text.trim().parse().ok());
        let cookie = head.field_text("cookie").and_then(position_in_cookie);
        let own = [field, cookie].into_iter().flatten().filter(|wanted| wanted.order == self.order);
        let wanted = own.max_by_key(|wanted| wanted.sequence)?;
        let applied = *self.applied.borrow();
        (wanted.sequence > applied.sequence && !applied.is_stale).then_some(wanted)
    }

    /// Whether this node has not applied a position of its stream.
    pub(crate) fn is_missing(&self, position: Position) -> bool {
        position.order == self.order && position.sequence > self.applied.borrow().sequence
    }

    /// Takes a place for a handler that waits. `None`: too many wait.
    pub(crate) fn enter_call(self: &Arc<Self>) -> Option<WaitPlace> {
        let place = self.waiting.take(MAX_WAITING)?;
        Some(WaitPlace { positions: Arc::clone(self), _place: place })
    }

    /// Takes a place for a request that must wait. `None`: too many wait.
    pub(crate) fn enter(self: &Arc<Self>, block: AddressBlock) -> Option<WaitPlace> {
        let place = self.waiting.take_for(block, MAX_WAITING, MAX_WAITING_PER_BLOCK)?;
        Some(WaitPlace { positions: Arc::clone(self), _place: place })
    }

    /// The lines of a response, after a request during which this node has applied a commit;
    /// `before` is the position at the start of the request.
    pub(crate) fn lines(&self, before: Position, is_secure: bool) -> String {
        let position = self.current();
        if position == before {
            return String::new();
        }
        let secure = if is_secure { "; Secure" } else { "" };
        format!(
            "{FIELD}: {position}\r\nSet-Cookie: {COOKIE}={position}; Path=/; Max-Age={COOKIE_AGE}; HttpOnly; SameSite=Lax{secure}\r\n"
        )
    }
}

impl WaitPlace {
    /// Waits until the node has applied a position, or is cut off.
    pub(crate) async fn wait(&self, position: Position, within: Duration) -> Waited {
        let mut applied = self.positions.applied.subscribe();
        let reached =
            applied.wait_for(|applied| applied.sequence >= position.sequence || applied.is_stale);
        match tokio::time::timeout(within, reached).await {
            Ok(Ok(applied)) if applied.sequence >= position.sequence => Waited::Applied,
            // The sender is a part of the positions, so it is not closed.
            Ok(_) => Waited::CutOff,
            Err(_) => Waited::TimedOut,
        }
    }
}

/// The position in a `Cookie` field. A value that is no position counts as none.
fn position_in_cookie(cookies: &str) -> Option<Position> {
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use bine_server::ClientAddress;

    use super::*;

    fn positions() -> Arc<ReadPositions> {
        let applied = watch::Sender::new(Applied { sequence: 7, is_stale: false });
        Arc::new(ReadPositions { applied, order: 0xa1, waiting: Arc::default() })
    }

    fn position(sequence: u64) -> Position {
        Position { sequence, order: 0xa1 }
    }

    fn block(number: u8) -> AddressBlock {
        ClientAddress::tcp(([10, 0, number, 1], 80).into()).block()
    }

    #[test]
    fn reads_positions_in_cookies() {
        assert_eq!(position_in_cookie("a=1; bine-position=12-000000a1;b=2"), Some(position(12)));
        for cookies in [
            "",
            "bine-position=",
            "bine-position=x",
            "bine-position=12",
            "xbine-position=1",
            "bine-position",
        ] {
            assert_eq!(position_in_cookie(cookies), None, "{cookies:?}");
        }
    }

    #[test]
    fn bounds_the_requests_that_wait() {
        let positions = positions();
        let own: Vec<_> = (0..MAX_WAITING_PER_BLOCK).map(|_| positions.enter(block(0))).collect();
        assert!(own.iter().all(Option::is_some));
        assert!(positions.enter(block(0)).is_none(), "one client has its share");
        let others = MAX_WAITING - MAX_WAITING_PER_BLOCK;
        let others: Vec<_> = (0..others)
            .map(|number| positions.enter(block(1 + (number / MAX_WAITING_PER_BLOCK) as u8)))
            .collect();
        assert!(others.iter().all(Option::is_some));
        assert!(positions.enter(block(200)).is_none(), "all places are taken");
        assert!(positions.enter_call().is_none(), "all places are taken");
        drop((own, others));
        assert_eq!(positions.waiting.count(), 0);
    }

    #[test]
    fn adds_lines_only_after_a_commit() {
        let positions = positions();
        assert_eq!(positions.lines(position(7), false), "");
        let lines = positions.lines(position(6), true);
        assert!(
            lines
                .starts_with("Bine-Position: 7-000000a1\r\nSet-Cookie: bine-position=7-000000a1; "),
            "{lines}"
        );
        assert!(lines.ends_with("; SameSite=Lax; Secure\r\n"), "{lines}");
    }
}
