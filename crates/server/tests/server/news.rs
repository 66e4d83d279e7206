//! The waiters of the test program: they wait for numbered words that the test publishes.

use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bine_http::{BodyFraming, Exchange, Reply, Status};
use bine_server::{
    Clock, SendOutcome, ServeOutcome, ServeReason, SuspendedResponse, WaiterSink, Waiters,
    WaitersFactory, WakeHandle,
};

/// The published words, and the threads to notify of them.
pub(crate) struct News {
    words: Mutex<Vec<String>>,
    bells: Mutex<Vec<WakeHandle>>,
    /// The number of suspended requests on all threads.
    waiting: AtomicUsize,
    /// The timeout of a wait in milliseconds.
    pub(crate) wait: AtomicU64,
    /// The number of notifications that will panic.
    pub(crate) faults: AtomicU32,
}

impl Default for News {
    fn default() -> Self {
        Self {
            words: Mutex::default(),
            bells: Mutex::default(),
            waiting: AtomicUsize::new(0),
            wait: AtomicU64::new(60_000),
            faults: AtomicU32::new(0),
        }
    }
}

impl News {
    pub(crate) fn tell(&self, word: &str) {
        self.words().push(word.to_owned());
        self.bells.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(WakeHandle::wake);
    }

    /// Returns the number of suspended requests.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Returns the factory of each thread's waiters.
    pub(crate) fn waiters(news: &Arc<Self>) -> WaitersFactory {
        let news = Arc::clone(news);
        Box::new(move |clock, bell| {
            news.bells.lock().unwrap_or_else(PoisonError::into_inner).push(bell);
            Box::new(Room { news: Arc::clone(&news), clock, seats: Vec::new(), turn: 0 })
        })
    }

    fn words(&self) -> MutexGuard<'_, Vec<String>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) -> Duration {
        Duration::from_millis(self.wait.load(Ordering::Relaxed))
    }
}

/// The suspended requests of one thread.
struct Room {
    news: Arc<News>,
    clock: Rc<Clock>,
    seats: Vec<Option<Seat>>,
    /// The index of the next seat to notify.
    turn: usize,
}

struct Seat {
    place: u64,
    position: usize,
    exchange: Exchange,
    /// The framing of a feed after its head, which continues after an event.
    pieces: Option<BodyFraming>,
    is_feed: bool,
}

impl Seat {
    /// Writes the words published since the last call.
    fn write(
        &mut self,
        words: &[String],
        wait: Duration,
        clock: &Clock,
    ) -> (Vec<u8>, ServeOutcome) {
        let mut out = Vec::new();
        let news = words.get(self.position..).unwrap_or_default().join(",");
        self.position = words.len();
        if !self.is_feed {
            Reply::begin(&mut out, self.exchange, Status::OK, &clock.date()).whole(news.as_bytes());
            return (out, ServeOutcome::Over { close: false });
        }
        let pieces = self.pieces.unwrap_or_else(|| {
            Reply::begin(&mut out, self.exchange, Status::OK, &clock.date()).stream()
        });
        self.pieces = Some(pieces);
        pieces.append(&mut out, (news + ";").as_bytes());
        (out, ServeOutcome::Waits(wait))
    }
}

impl Room {
    fn leave(&mut self, seat: usize) {
        if self.seats[seat].take().is_some() {
            self.news.waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Waiters for Room {
    fn park(&mut self, place: u64, hold: SuspendedResponse) -> u32 {
        let (position, is_feed) = (hold.position as usize, hold.manner == 1);
        let seat = Seat { place, position, exchange: hold.exchange, pieces: None, is_feed };
        self.news.waiting.fetch_add(1, Ordering::AcqRel);
        let vacant = self.seats.iter().position(Option::is_none);
        let vacant = vacant.unwrap_or_else(|| {
            self.seats.push(None);
            self.seats.len() - 1
        });
        self.seats[vacant] = Some(seat);
        vacant as u32
    }

    fn serve(&mut self, key: u32, why: ServeReason, out: &mut Vec<u8>) -> ServeOutcome {
        let (news, wait) = (Arc::clone(&self.news), self.news.wait());
        let words = news.words();
        let seat = self.seats[key as usize].as_mut().unwrap();
        if words.len() > seat.position {
            let (bytes, after) = seat.write(&words, wait, &self.clock);
            out.extend(bytes);
            if matches!(after, ServeOutcome::Over { .. }) {
                self.leave(key as usize);
                return after;
            }
            if !matches!(why, ServeReason::Stop | ServeReason::NoThread) {
                return after;
            }
        }
        match (why, seat.is_feed) {
            (ServeReason::Parked | ServeReason::Room, _) => ServeOutcome::Waits(wait),
            (ServeReason::Time, true) => {
                if let Some(pieces) = seat.pieces {
                    pieces.append(out, b"ping;");
                }
                ServeOutcome::Waits(wait)
            }
            (ServeReason::Time | ServeReason::NoThread | ServeReason::Stop, false) => {
                let keep_alive = seat.exchange.keep_alive && why != ServeReason::Stop;
                let exchange = Exchange { keep_alive, ..seat.exchange };
                Reply::begin(out, exchange, Status::NO_CONTENT, &self.clock.date()).empty();
                self.leave(key as usize);
                ServeOutcome::Over { close: !keep_alive }
            }
            (ServeReason::NoThread | ServeReason::Stop, true) => {
                let pieces = seat.pieces.unwrap_or(BodyFraming::Empty);
                pieces.end(out);
                self.leave(key as usize);
                ServeOutcome::Over { close: true }
            }
        }
    }

    fn deliver(&mut self, slice: usize, out: &mut dyn WaiterSink) -> bool {
        let news = Arc::clone(&self.news);
        let (words, wait) = (news.words(), news.wait());
        for _ in 0..slice {
            let Some(seat) = self.seats.get_mut(self.turn) else {
                self.turn = 0;
                return false;
            };
            self.turn += 1;
            let Some(seat) = seat.as_mut().filter(|seat| seat.position < words.len()) else {
                continue;
            };
            let faults = &news.faults;
            if faults
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1))
                .is_ok()
            {
                panic!("on purpose");
            }
            let before = (seat.position, seat.pieces);
            let (bytes, after) = seat.write(&words, wait, &self.clock);
            match out.send(seat.place, &bytes, after) {
                SendOutcome::Full => (seat.position, seat.pieces) = before,
                SendOutcome::Taken if matches!(after, ServeOutcome::Waits(_)) => {}
                SendOutcome::Taken | SendOutcome::Gone => self.leave(self.turn - 1),
            }
        }
        true
    }

    fn forget(&mut self, key: u32) {
        self.leave(key as usize);
    }
}
