//! The load generator `wrk`, with one thread.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tools::output;

/// The report of `wrk`, times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) requests: f64,
    pub(crate) rate: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// The requests that `wrk` sends, on kept connections.
pub(crate) struct Load<'run> {
    pub(crate) port: u16,
    pub(crate) connections: u64,
    pub(crate) seconds: u64,
    pub(crate) path: &'run str,
    /// A program in Lua that makes the requests, in place of the path.
    pub(crate) script: Option<String>,
    /// A folder for the program.
    pub(crate) folder: &'run Path,
}

impl Load<'_> {
    /// Sends it.
    ///
    /// # Errors
    ///
    /// `wrk` fails, or not every response is a 2xx.
    pub(crate) fn send(&self) -> Result<Report> {
        let mut command = Command::new("wrk");
        let options = [format!("-c{}", self.connections), format!("-d{}s", self.seconds)];
        command.args(["-t1", "--latency"]).args(options);
        if let Some(script) = &self.script {
            let file = self.folder.join("load.lua");
            fs::write(&file, script)?;
            command.arg("-s").arg(file);
        }
        Report::parse(&output(command.arg(format!("http://127.0.0.1:{}{}", self.port, self.path)))?)
    }
}

impl Report {
    /// Reads what `wrk` prints.
    fn parse(text: &str) -> Result<Self> {
        let faults = ["Non-2xx", "Socket errors"];
        let fault = text.lines().find(|line| faults.iter().any(|fault| line.contains(fault)));
        ensure!(fault.is_none(), "not every response was a 200: {}", fault.unwrap_or("").trim());
        let word = |mark: &str, place: usize| -> Result<&str> {
            let line = text.lines().find(|line| line.contains(mark));
            let word = line.and_then(|line| line.split_whitespace().nth(place));
            word.with_context(|| format!("wrk printed no `{}`: {text}", mark.trim()))
        };
        let requests: f64 = word(" requests in ", 0)?.parse()?;
        ensure!(requests > 0.5, "no request was answered");
        Ok(Self {
            requests,
            rate: word("Requests/sec:", 1)?.parse()?,
            p50: microseconds(word(" 50%", 1)?)?,
            p99: microseconds(word(" 99%", 1)?)?,
        })
    }
}

/// A time of `wrk`, such as `1.25ms`.
fn microseconds(text: &str) -> Result<f64> {
    for (unit, factor) in [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 6e7)] {
        if let Some(Ok(number)) = text.strip_suffix(unit).map(str::parse::<f64>) {
            return Ok(number * factor);
        }
    }
    anyhow::bail!("`{text}` is not a time")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "Running 2s test @ http://127.0.0.1:1/\n  Latency Distribution\n     50%  812.00us\n     \
        99%    1.25ms\n  3000 requests in 2.00s, 1.00MB read\nRequests/sec:   1500.25\n";

    #[test]
    fn reads_the_report_of_wrk() {
        let report = Report::parse(PRINTED).unwrap();
        let expected = Report { requests: 3000.0, rate: 1500.25, p50: 812.0, p99: 1250.0 };
        assert_eq!(report, expected);
        let faulty = format!("{PRINTED}  Non-2xx or 3xx responses: 3\n");
        assert!(Report::parse(&faulty).unwrap_err().to_string().contains("responses: 3"));
        assert!(Report::parse("").is_err());
    }

    #[test]
    fn reads_all_units_of_time() {
        let times = ["5.00us", "1.50ms", "2.00s", "1.00m"];
        let times = times.map(|text| microseconds(text).unwrap().to_string());
        assert_eq!(times, ["5", "1500", "2000000", "60000000"]);
        assert!(microseconds("5").is_err());
    }
}
