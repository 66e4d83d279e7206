//! The load generator `ab` of Apache.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tools::{output, require};

/// The report of `ab`: times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Report {
    /// Requests per second.
    pub(crate) rate: f64,
    /// Times in which half, and 99 %, of the requests were answered.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// The requests that `ab` sends.
pub(crate) struct Load<'run> {
    pub(crate) port: u16,
    pub(crate) path: &'run str,
    pub(crate) requests: u64,
    /// Requests at the same time.
    pub(crate) clients: u64,
    /// Whether connections are kept; otherwise each request has a new connection.
    pub(crate) is_kept: bool,
}

/// Fails if it is not installed.
pub(crate) fn require_ab() -> Result<()> {
    require("ab", "apache2-utils")
}

impl Load<'_> {
    /// Sends it.
    ///
    /// # Errors
    ///
    /// `ab` fails, or not every response is a 2xx of the same length.
    pub(crate) fn send(&self) -> Result<Report> {
        let mut command = Command::new("ab");
        let (requests, clients) = (self.requests.to_string(), self.clients.to_string());
        command.args(["-q", "-n", &requests, "-c", &clients]);
        if self.is_kept {
            command.arg("-k");
        }
        let url = format!("http://127.0.0.1:{}{}", self.port, self.path);
        Report::parse(&output(command.arg(url))?, self.requests)
    }
}

impl Report {
    /// Reads what `ab` prints.
    fn parse(text: &str, requests: u64) -> Result<Self> {
        let figure = |mark: &str| -> Option<f64> {
            let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(mark))?;
            rest.split_whitespace().next()?.parse().ok()
        };
        let complete = figure("Complete requests:").context("ab printed no number of requests")?;
        // A length that changes counts as a failure, but all responses are equal.
        let failed =
            figure("Failed requests:").unwrap_or(0.0) + figure("Non-2xx responses:").unwrap_or(0.0);
        ensure!(failed < 0.5, "{failed} of {complete} responses were wrong");
        ensure!(
            (complete - requests as f64).abs() < 0.5,
            "{complete} of {requests} requests were answered"
        );
        Ok(Self {
            rate: figure("Requests per second:").context("ab printed no rate")?,
            p50: figure("50%").context("ab printed no median")?,
            p99: figure("99%").context("ab printed no 99th percentile")?,
        })
    }
}

#[cfg(test)]
mod tests {
    //! Reports of `ab`.

    use super::*;

    const REPORT: &str = "Complete requests:      10000\nFailed requests:        0\n\
        Requests per second:    16000.50 [#/sec] (mean)\n\
        Percentage of the requests served within a certain time (ms)\n  50%      6\n  99%     11\n \
        100%   1020 (longest request)\n";

    #[test]
    fn reads_the_report_of_ab() {
        let report = Report::parse(REPORT, 10_000).unwrap();
        assert_eq!(report, Report { rate: 16000.5, p50: 6.0, p99: 11.0 });
        assert!(Report::parse(REPORT, 9_999).is_err());
        let wrong = REPORT.replace("requests:        0", "requests:        1");
        assert!(Report::parse(&wrong, 10_000).is_err());
        let other = format!("{REPORT}Non-2xx responses:      3\n");
        assert!(Report::parse(&other, 10_000).is_err());
        assert!(Report::parse("", 1).is_err());
    }
}
