//! A service with its interval, as a program or its configuration declares it.

use std::time::Duration;

use crate::configuration::values::seconds;
use crate::text::Text;

/// A service that runs at an interval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Job {
    /// The address of the service.
    pub(super) path: Text,
    pub(super) interval: Duration,
}

impl Job {
    /// Parses `10m /board/clean_up`.
    ///
    /// # Errors
    ///
    /// A message that names the right form.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` must be a time and a service, like 10m /board/clean_up");
        let (time, path) = text.trim().split_once(char::is_whitespace).ok_or_else(wrong)?;
        let path = path.trim();
        let seconds = seconds(time).map_err(|_| wrong())?;
        if seconds == 0 || !path.starts_with('/') || path.contains(char::is_whitespace) {
            return Err(wrong());
        }
        Ok(Self { path: path.into(), interval: Duration::from_secs(seconds.into()) })
    }

    /// The interval in milliseconds, at least one second.
    pub(super) fn milliseconds(&self) -> u64 {
        u64::try_from(self.interval.as_millis()).unwrap_or(u64::MAX).max(1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_time_and_an_address() {
        let job = Job::parse(" 10m  /board/clean_up ").unwrap();
        let interval = Duration::from_mins(10);
        assert_eq!(job, Job { path: "/board/clean_up".into(), interval });
        for wrong in ["", "10m", "10m clean_up", "/a 10m", "off /a", "0s /a", "10m /a /b"] {
            assert!(Job::parse(wrong).unwrap_err().contains("like 10m /board/clean_up"), "{wrong}");
        }
    }
}
