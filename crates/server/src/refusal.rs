//! The complete responses to refused connections, built at compile time.

use rustix::time::{ClockId, clock_gettime};

/// Variants of one response with different `Retry-After` times, so that clients refused together do
/// not retry together.
pub(crate) struct Refusal([&'static str; 4]);

macro_rules! refusal {
    ($text:literal, $length:literal, $($seconds:literal)+) => {
        Refusal([$(concat!(
            "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: ",
            $seconds,
            "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ",
            $length,
            "\r\n\r\n",
            $text,
        )),+])
    };
}

/// Response to new connections while memory is short.
pub(crate) const NO_MEMORY: Refusal =
    refusal!("the server is busy; try again in a moment\n", 42, 4 5 6 7);
/// Response to an address at its connection limit.
pub(crate) const TOO_MANY: Refusal =
    refusal!("Too many connections from your address\n", 39, 4 5 6 7);
/// Response to a connection that waits too long for a thread, or finds the queue full.
pub(crate) const NO_THREAD: Refusal =
    refusal!("All threads serve a connection; try again in a moment\n", 54, 1 2 3 4);

impl Refusal {
    /// Selects a variant at random, by the microseconds of the clock.
    pub(crate) fn response(&self) -> &'static [u8] {
        let time = clock_gettime(ClockId::Monotonic);
        self.variant(time.tv_nsec.cast_unsigned() / 1000)
    }

    fn variant(&self, chance: u64) -> &'static [u8] {
        self.0[(chance % self.0.len() as u64) as usize].as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_a_correct_length_and_different_retry_times() {
        for refusal in [NO_MEMORY, TOO_MANY, NO_THREAD] {
            let mut times: Vec<&str> = Vec::new();
            for chance in 0..4 {
                let text = str::from_utf8(refusal.variant(chance)).unwrap();
                let (head, content) = text.split_once("\r\n\r\n").unwrap();
                assert!(head.ends_with(&format!("Content-Length: {}", content.len())), "{text}");
                let time = head.lines().find_map(|line| line.strip_prefix("Retry-After: "));
                times.extend(time);
            }
            times.dedup();
            assert_eq!(times.len(), 4, "{times:?}");
            assert!(refusal.response().starts_with(b"HTTP/1.1 503 "));
        }
    }
}
