//! The order of TLS handshakes on one event loop: a bounded number begins in each turn, and clients
//! that resume a session precede others (docs/decisions/0027).

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::address::{AddressBlock, AddressSite};
use crate::slab::Token;

/// Full handshakes that begin in one turn. With a key of ECDSA they take less than a millisecond
/// (docs/measurements/tls.md), with one of RSA several times as long.
const FULL_PER_TURN: u32 = 4;
/// Handshakes that resume a session and begin in one turn, so that full ones begin at least at a
/// fourth of their rate.
const RESUMED_PER_TURN: u32 = 16;
/// Sites with waiting handshakes from which on new connections stay in the queue of the kernel.
const CROWD: usize = 64;
/// The number of offers of a site that are not preferred after one that turned out to be false.
const DISTRUSTED_OFFERS: u32 = 16;
/// The maximum number of sites with such offers.
const MAX_DISTRUSTED: usize = 1024;

/// The handshakes on one thread that have received a `ClientHello` and have not begun.
///
/// Their number is bounded by [`Handshakes`](super::Handshakes), which counts them, and their time
/// by the timeout of the handshake. While fewer begin than one turn allows, none waits.
#[derive(Default)]
pub(crate) struct HandshakeQueue(RefCell<Lanes>);

#[derive(Default)]
struct Lanes {
    /// Whether the thread serves many connections, and begins the waiting ones in its turns.
    has_turns: bool,
    full: Lane,
    resumed: Lane,
    next_key: u64,
    /// The number of further offers that are not preferred, by site.
    distrusted: HashMap<AddressSite, u32>,
}

/// The handshakes of one kind. The sites take turns, and each site begins its oldest.
#[derive(Default)]
struct Lane {
    /// Handshakes that have begun in this turn.
    begun: u32,
    len: usize,
    /// The sites with waiting handshakes, in the order of their turns.
    order: VecDeque<AddressSite>,
    waiting: HashMap<AddressSite, VecDeque<WaitingHandshake>>,
}

struct WaitingHandshake {
    key: u64,
    token: Token,
    is_granted: Rc<Cell<bool>>,
}

/// Whether a handshake may begin.
pub(super) enum Verdict {
    /// At once. `is_preferred`: only because its client offers to resume a session.
    Begin { is_preferred: bool },
    /// When the place is granted.
    Wait(QueuedHandshake),
}

/// The place of one handshake in the queue. Dropping it gives the place up.
pub(super) struct QueuedHandshake {
    queue: Rc<HandshakeQueue>,
    key: u64,
    site: AddressSite,
    is_preferred: bool,
    is_granted: Rc<Cell<bool>>,
}

impl HandshakeQueue {
    /// Makes handshakes wait from now on. The thread calls [`begin_turn`](Self::begin_turn) and
    /// [`next`](Self::next) in each of its turns.
    pub(crate) fn enable(&self) {
        self.0.borrow_mut().has_turns = true;
    }

    pub(crate) fn begin_turn(&self) {
        let mut state = self.0.borrow_mut();
        (state.full.begun, state.resumed.begun) = (0, 0);
    }

    /// Grants the next place that this turn allows, and returns its connection.
    pub(crate) fn next(&self) -> Option<Token> {
        let mut state = self.0.borrow_mut();
        let Lanes { full, resumed, .. } = &mut *state;
        resumed.grant(RESUMED_PER_TURN).or_else(|| full.grant(FULL_PER_TURN))
    }

    pub(crate) fn is_empty(&self) -> bool {
        let state = self.0.borrow();
        state.full.order.is_empty() && state.resumed.order.is_empty()
    }

    /// Whether the loop should accept no connection now, because `most` handshakes wait or those of
    /// many sites. Otherwise a crowd of new clients would evict its own handshakes. The handshakes of
    /// one address block are fewer, since it has a share only.
    pub(crate) fn is_crowded(&self, most: usize) -> bool {
        let Lanes { full, resumed, .. } = &*self.0.borrow();
        full.order.len() + resumed.order.len() >= CROWD || full.len + resumed.len >= most
    }

    /// Decides when the handshake of connection `token` from `block` begins. `is_resumption` is
    /// called only if handshakes compete.
    pub(super) fn admit(
        self: &Rc<Self>,
        token: Token,
        block: AddressBlock,
        is_resumption: impl FnOnce() -> bool,
    ) -> Verdict {
        if self.may_begin() {
            return Verdict::Begin { is_preferred: false };
        }
        let is_preferred = is_resumption();
        let mut state = self.0.borrow_mut();
        let Lanes { full, resumed, next_key, .. } = &mut *state;
        let (lane, most) =
            if is_preferred { (resumed, RESUMED_PER_TURN) } else { (full, FULL_PER_TURN) };
        if lane.has_room(most) {
            lane.begun += 1;
            return Verdict::Begin { is_preferred };
        }
        let (key, site) = (*next_key, block.site());
        *next_key += 1;
        let is_granted = Rc::<Cell<bool>>::default();
        lane.push(site, WaitingHandshake { key, token, is_granted: Rc::clone(&is_granted) });
        let queue = Rc::clone(self);
        Verdict::Wait(QueuedHandshake { queue, key, site, is_preferred, is_granted })
    }

    /// Whether a handshake of any kind may begin at once.
    fn may_begin(&self) -> bool {
        let Lanes { has_turns, full, resumed, .. } = &mut *self.0.borrow_mut();
        if !*has_turns {
            return true;
        }
        let may_begin = full.has_room(FULL_PER_TURN) && resumed.order.is_empty();
        full.begun += u32::from(may_begin);
        may_begin
    }

    /// Whether an offer from `block` to resume a session is preferred. Each call takes one of those
    /// offers that are not.
    pub(super) fn trusts(&self, block: AddressBlock) -> bool {
        let distrusted = &mut self.0.borrow_mut().distrusted;
        let Some(left) = distrusted.get_mut(&block.site()) else { return true };
        *left -= 1;
        if *left == 0 {
            distrusted.remove(&block.site());
        }
        false
    }

    /// A preferred handshake from `block` has not resumed a session: the next offers of its site wait
    /// as full handshakes do.
    pub(super) fn distrust(&self, block: AddressBlock) {
        let distrusted = &mut self.0.borrow_mut().distrusted;
        if distrusted.len() >= MAX_DISTRUSTED
            && let Some(any) = distrusted.keys().next().copied()
        {
            distrusted.remove(&any);
        }
        distrusted.insert(block.site(), DISTRUSTED_OFFERS);
    }

    fn remove(&self, place: &QueuedHandshake) {
        let mut state = self.0.borrow_mut();
        let lane = if place.is_preferred { &mut state.resumed } else { &mut state.full };
        lane.remove(place.site, place.key);
    }
}

impl Lane {
    /// Whether a handshake may begin before any other of its kind.
    fn has_room(&self, most: u32) -> bool {
        self.begun < most && self.order.is_empty()
    }

    fn push(&mut self, site: AddressSite, handshake: WaitingHandshake) {
        let waiting = self.waiting.entry(site).or_default();
        if waiting.is_empty() {
            self.order.push_back(site);
        }
        waiting.push_back(handshake);
        self.len += 1;
    }

    /// Grants the oldest handshake of the site whose turn it is, unless `most` have begun.
    fn grant(&mut self, most: u32) -> Option<Token> {
        if self.begun >= most {
            return None;
        }
        let site = self.order.pop_front()?;
        let waiting = self.waiting.get_mut(&site)?;
        let WaitingHandshake { token, is_granted, .. } = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(&site);
        } else {
            self.order.push_back(site);
        }
        is_granted.set(true);
        self.begun += 1;
        self.len -= 1;
        Some(token)
    }

    fn remove(&mut self, site: AddressSite, key: u64) {
        let Some(waiting) = self.waiting.get_mut(&site) else { return };
        let before = waiting.len();
        waiting.retain(|handshake| handshake.key != key);
        self.len -= before - waiting.len();
        if waiting.is_empty() {
            self.waiting.remove(&site);
            self.order.retain(|other| *other != site);
        }
    }
}

impl QueuedHandshake {
    /// Whether the handshake is to begin now.
    pub(super) fn is_granted(&self) -> bool {
        self.is_granted.get()
    }

    /// Whether the client offers to resume a session.
    pub(super) const fn is_preferred(&self) -> bool {
        self.is_preferred
    }
}

impl Drop for QueuedHandshake {
    fn drop(&mut self) {
        if !self.is_granted() {
            self.queue.remove(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn queue() -> Rc<HandshakeQueue> {
        let queue = Rc::<HandshakeQueue>::default();
        queue.enable();
        queue.begin_turn();
        queue
    }

    fn block(number: u8) -> AddressBlock {
        AddressBlock::of([192, 0, 2, number].into())
    }

    fn admit(queue: &Rc<HandshakeQueue>, number: u32, from: u8, resumes: bool) -> Verdict {
        let token = Token { index: number, generation: 0 };
        queue.admit(token, block(from), || resumes)
    }

    #[track_caller]
    fn wait(queue: &Rc<HandshakeQueue>, number: u32, from: u8, resumes: bool) -> QueuedHandshake {
        match admit(queue, number, from, resumes) {
            Verdict::Wait(queued) => queued,
            Verdict::Begin { .. } => panic!("handshake {number} begins"),
        }
    }

    /// Uses all full handshakes of a turn.
    fn use_up(queue: &Rc<HandshakeQueue>) {
        for number in 0..FULL_PER_TURN {
            let verdict = admit(queue, number, 1, false);
            assert!(matches!(verdict, Verdict::Begin { is_preferred: false }));
        }
    }

    fn granted(queue: &HandshakeQueue) -> Vec<u32> {
        std::iter::from_fn(|| queue.next()).map(|token| token.index).collect()
    }

    #[test]
    fn examines_no_offer_unless_handshakes_compete() {
        let queue = queue();
        for _ in 0..3 {
            for number in 0..FULL_PER_TURN {
                let token = Token { index: number, generation: 0 };
                let verdict = queue.admit(token, block(1), || unreachable!("it is examined"));
                assert!(matches!(verdict, Verdict::Begin { is_preferred: false }));
            }
            assert!(queue.is_empty());
            queue.begin_turn();
        }
    }

    #[test]
    fn begins_all_handshakes_of_a_thread_without_turns() {
        let queue = Rc::<HandshakeQueue>::default();
        for number in 0..1000 {
            assert!(matches!(admit(&queue, number, 1, false), Verdict::Begin { .. }));
        }
    }

    #[test]
    fn begins_resumed_handshakes_before_full_ones() {
        let queue = queue();
        use_up(&queue);
        let _full = [10, 11].map(|number| wait(&queue, number, 1, false));
        for number in 0..RESUMED_PER_TURN {
            let verdict = admit(&queue, 20 + number, 2, true);
            assert!(matches!(verdict, Verdict::Begin { is_preferred: true }));
        }
        let _resumed = wait(&queue, 50, 2, true);
        assert_eq!(granted(&queue), [0_u32; 0], "the turn has begun all that it may");
        queue.begin_turn();
        assert_eq!(granted(&queue), [50, 10, 11]);
    }

    #[test]
    fn begins_the_oldest_handshake_of_each_site_by_turns() {
        let queue = queue();
        use_up(&queue);
        let _waiting = [(10, 1), (11, 1), (12, 1), (13, 1), (14, 2), (15, 3), (16, 2)]
            .map(|(number, from)| wait(&queue, number, from, false));
        queue.begin_turn();
        assert_eq!(granted(&queue), [10, 14, 15, 11]);
        queue.begin_turn();
        assert_eq!(granted(&queue), [16, 12, 13]);
        assert!(queue.is_empty());
    }

    #[test]
    fn gives_up_the_place_of_a_closed_connection() {
        let queue = queue();
        use_up(&queue);
        let first = wait(&queue, 10, 1, false);
        let second = wait(&queue, 11, 1, false);
        drop(first);
        queue.begin_turn();
        assert_eq!(granted(&queue), [11]);
        assert!(second.is_granted());
        drop(second);
        assert!(queue.is_empty() && queue.0.borrow().full.waiting.is_empty());
    }

    #[test]
    fn is_crowded_by_many_handshakes_or_sites() {
        let queue = queue();
        use_up(&queue);
        let mut waiting: Vec<_> = (0..9).map(|number| wait(&queue, number, 1, false)).collect();
        assert!(!queue.is_crowded(10));
        waiting.push(wait(&queue, 9, 1, false));
        assert!(queue.is_crowded(10));
        queue.begin_turn();
        granted(&queue);
        assert!(!queue.is_crowded(7));
        drop(waiting);
        let sites = (1..=CROWD as u8).map(|from| wait(&queue, 0, from, false));
        let mut waiting: Vec<_> = sites.collect();
        assert!(queue.is_crowded(1000));
        waiting.pop();
        assert!(!queue.is_crowded(1000));
    }

    #[test]
    fn prefers_no_offers_after_a_false_one() {
        let queue = queue();
        assert!(queue.trusts(block(1)));
        queue.distrust(block(1));
        assert!(queue.trusts(block(2)), "another site");
        assert!((0..DISTRUSTED_OFFERS).all(|_| !queue.trusts(block(1))));
        assert!(queue.trusts(block(1)));
    }

    #[test]
    fn bounds_the_sites_that_it_distrusts() {
        let queue = queue();
        for number in 0..2 * MAX_DISTRUSTED as u32 {
            queue.distrust(AddressBlock::of(number.to_be_bytes().into()));
        }
        assert_eq!(queue.0.borrow().distrusted.len(), MAX_DISTRUSTED);
    }

    /// A handshake that arrives, and whether its connection closes while it waits.
    #[derive(Clone, Debug)]
    struct Arrival {
        from: u8,
        resumes: bool,
        closes: bool,
    }

    const SITES: u8 = 6;

    fn arrivals() -> impl Strategy<Value = Vec<Vec<Arrival>>> {
        let arrival = (0..SITES, any::<bool>(), proptest::bool::weighted(0.1))
            .prop_map(|(from, resumes, closes)| Arrival { from, resumes, closes });
        let turn = proptest::collection::vec(arrival, 0..60);
        proptest::collection::vec(turn, 1..20)
    }

    /// A handshake that waits, and the last turn in which it may begin.
    struct Expected {
        number: u32,
        latest: u32,
        place: QueuedHandshake,
    }

    proptest! {
        /// Each handshake begins after those of its site that waited before it, with one of each
        /// other site in between. Other arrivals, also those that are preferred, do not delay it.
        #[test]
        fn starves_no_handshake_and_bounds_each_turn(turns in arrivals()) {
            let queue = queue();
            let (mut number, mut turn) = (0, 0);
            let mut expected: Vec<Expected> = Vec::new();
            let mut turns = turns.into_iter();
            loop {
                let arriving = turns.next();
                if arriving.is_none() && queue.is_empty() {
                    break;
                }
                queue.begin_turn();
                let mut begun = [0; 2];
                for Arrival { from, resumes, closes } in arriving.unwrap_or_default() {
                    number += 1;
                    match admit(&queue, number, from, resumes) {
                        Verdict::Begin { is_preferred } => begun[usize::from(is_preferred)] += 1,
                        Verdict::Wait(_) if closes => {}
                        Verdict::Wait(place) => {
                            let is_ahead = |other: &&Expected| {
                                other.place.site == place.site
                                    && other.place.is_preferred == place.is_preferred
                            };
                            let ahead = expected.iter().filter(is_ahead).count() as u32;
                            let most = if resumes { RESUMED_PER_TURN } else { FULL_PER_TURN };
                            let rounds = (ahead + 1) * u32::from(SITES);
                            let latest = turn + 1 + rounds.div_ceil(most);
                            expected.push(Expected { number, latest, place });
                        }
                    }
                }
                while let Some(token) = queue.next() {
                    let found = expected.iter().position(|each| each.number == token.index);
                    let Expected { latest, place, .. } = expected.remove(found.unwrap());
                    prop_assert!(place.is_granted() && turn <= latest, "turn {} of {}", turn, latest);
                    begun[usize::from(place.is_preferred)] += 1;
                }
                prop_assert!(begun[0] <= FULL_PER_TURN && begun[1] <= RESUMED_PER_TURN);
                prop_assert!(
                    begun[0] == FULL_PER_TURN
                        || !expected.iter().any(|each| !each.place.is_preferred),
                    "a full handshake waits without need"
                );
                turn += 1;
            }
            prop_assert!(expected.is_empty());
            let state = queue.0.borrow();
            prop_assert!(state.full.waiting.is_empty() && state.resumed.waiting.is_empty());
            prop_assert_eq!((state.full.len, state.resumed.len), (0, 0));
        }
    }
}
