//! Counts frames that cost the server more than the client, so that a connection that sends little
//! else is closed.
//!
//! Such frames are known from attacks: pings, settings and empty data (CVE-2019-9512, -9515, -9518),
//! priorities (CVE-2019-9513), resets (CVE-2023-44487), window updates without need. Each of them
//! takes from a budget that is refilled over time, and by content that the client receives.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bine_log::{self as log, LogLimit};

use crate::address::ClientAddress;

/// The connections of a server that were closed because of a flood.
#[derive(Default)]
pub(crate) struct FloodCounter {
    closed: AtomicU64,
    log: LogLimit,
}

impl FloodCounter {
    /// Counts a connection of `peer`, closed at `now` milliseconds, and logs it at most once a second.
    pub(super) fn note(&self, peer: ClientAddress, now: u64) {
        self.closed.fetch_add(1, Ordering::Relaxed);
        if let Some(left_out) = self.log.allows(now) {
            log::warn(format_args!(
                "closed a connection of HTTP/2 of {peer}, which sends a flood of frames or resets; \
                 {left_out} similar lines were left out"
            ));
        }
    }

    /// The number of connections closed.
    pub(crate) fn closed(&self) -> u64 {
        self.closed.load(Ordering::Relaxed)
    }
}

/// Reads the heads of frames in the bytes that a client sends.
#[derive(Default)]
pub(super) struct FrameScanner {
    /// The part of a frame's head that has been received.
    head: [u8; HEAD],
    filled: usize,
    /// The bytes of the current frame's payload that are still to come.
    skip: u32,
    /// The bytes of the preface that are still to come.
    preface: u8,
}

/// The length of a frame's head (RFC 9113, section 4.1).
const HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;

impl FrameScanner {
    /// For a connection from its first byte.
    pub(super) const fn new() -> Self {
        Self { head: [0; HEAD], filled: 0, skip: 0, preface: super::PREFACE.len() as u8 }
    }

    /// The number of frames in `bytes` that do not advance a request.
    pub(super) fn count_idle_frames(&mut self, mut bytes: &[u8]) -> u32 {
        let preface = bytes.len().min(usize::from(self.preface));
        self.preface -= preface as u8;
        bytes = &bytes[preface..];
        let mut count = 0;
        while !bytes.is_empty() {
            if self.skip > 0 {
                let skipped = bytes.len().min(self.skip as usize);
                self.skip -= skipped as u32;
                bytes = &bytes[skipped..];
                continue;
            }
            let taken = bytes.len().min(HEAD - self.filled);
            self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == HEAD {
                self.filled = 0;
                let [a, b, c, kind, flags, ..] = self.head;
                self.skip = u32::from_be_bytes([0, a, b, c]);
                let advances = match kind {
                    HEADERS => true,
                    DATA => self.skip > 0 || flags & END_STREAM != 0,
                    _ => false,
                };
                count += u32::from(!advances);
            }
        }
        count
    }
}

/// What a client may spend on such frames.
pub(super) struct FloodBudget {
    left: u32,
    /// When it was refilled, as the time since the begin of the connection.
    refilled: Duration,
}

/// A browser that opens a page with a hundred files sends some two hundred such frames at once.
const BURST: u32 = 2000;
/// Frames per second. 200 streams in use, each with a window update and a reset each second, stay
/// below it.
const PER_SECOND: u32 = 400;
/// A client sends a window update for 4 KiB or more.
const BYTES_PER_FRAME: usize = 2048;

impl FloodBudget {
    pub(super) const fn new() -> Self {
        Self { left: BURST, refilled: Duration::ZERO }
    }

    /// Takes `count` frames at `now`, the time since the begin of the connection. Returns false if
    /// the budget has less.
    pub(super) fn spend(&mut self, count: u32, now: Duration) -> bool {
        if count > self.left {
            let elapsed = now.saturating_sub(self.refilled);
            let earned = elapsed.as_millis().saturating_mul(u128::from(PER_SECOND)) / 1000;
            if earned > 0 {
                self.refilled = now;
                self.earn(u32::try_from(earned).unwrap_or(u32::MAX));
            }
        }
        match self.left.checked_sub(count) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// The client has received `bytes` of content.
    pub(super) fn note_sent(&mut self, bytes: usize) {
        self.earn((bytes / BYTES_PER_FRAME) as u32);
    }

    fn earn(&mut self, frames: u32) {
        self.left = self.left.saturating_add(frames).min(BURST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        let head = [length[1], length[2], length[3], kind, flags, 0, 0, 0, 1];
        [&head[..], payload].concat()
    }

    #[test]
    fn counts_frames_that_advance_no_request() {
        let idle = [
            frame(DATA, 0, b""),
            frame(2, 0, b"12345"),
            frame(3, 0, b"1234"),
            frame(4, 0, b""),
            frame(6, 0, b"12345678"),
            frame(8, 0, b"1234"),
            frame(9, 4, b""),
            frame(77, 0, b"unknown"),
        ];
        let useful = [frame(DATA, 0, b"a"), frame(DATA, END_STREAM, b""), frame(HEADERS, 4, b"x")];
        let bytes = [super::super::PREFACE, &idle.concat(), &useful.concat()].concat();
        for piece in [1, 2, 5, 9, 10, bytes.len()] {
            let mut scanner = FrameScanner::new();
            let count: u32 =
                bytes.chunks(piece).map(|piece| scanner.count_idle_frames(piece)).sum();
            assert_eq!(count as usize, idle.len(), "pieces of {piece}");
        }
    }

    proptest::proptest! {
        #[test]
        fn counts_the_same_in_any_pieces(
            bytes in proptest::collection::vec(0_u8..4, 0..400),
            cuts in proptest::collection::vec(1_usize..30, 1..20),
        ) {
            let whole = FrameScanner::new().count_idle_frames(&bytes);
            let mut scanner = FrameScanner::new();
            let (mut rest, mut count) = (&bytes[..], 0);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                count += scanner.count_idle_frames(piece);
                rest = later;
            }
            proptest::prop_assert_eq!(count, whole);
        }
    }

    #[test]
    fn counts_floods_and_logs_one_a_second() {
        let messages = log::test_support::capture();
        let counter = FloodCounter::default();
        for now in [5000, 5001, 5999, 6000] {
            counter.note(ClientAddress::tcp(([192, 0, 2, 1], 1).into()), now);
        }
        assert_eq!(counter.closed(), 4);
        let lines = messages.end();
        let has_count = |index: usize, count: &str| {
            lines[index].contains("192.0.2.1") && lines[index].contains(count)
        };
        assert!(has_count(0, "; 0 similar") && has_count(1, "; 2 similar"), "{lines:?}");
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn refills_over_time() {
        let mut budget = FloodBudget::new();
        assert!(budget.spend(BURST, Duration::ZERO));
        assert!(!budget.spend(1, Duration::ZERO));
        assert!(budget.spend(PER_SECOND, Duration::from_secs(1)));
        assert!(!budget.spend(1, Duration::from_millis(1002)), "a frame needs 2.5 ms");
        assert!(budget.spend(1, Duration::from_millis(1003)));
        // A day of rest earns one burst.
        assert!(budget.spend(BURST, Duration::from_hours(24)));
        assert!(!budget.spend(1, Duration::from_hours(24)));
    }

    #[test]
    fn allows_window_updates_for_content() {
        let mut budget = FloodBudget::new();
        assert!(budget.spend(BURST, Duration::ZERO));
        budget.note_sent(10 * BYTES_PER_FRAME);
        assert!(budget.spend(10, Duration::ZERO));
        assert!(!budget.spend(1, Duration::ZERO));
    }
}
