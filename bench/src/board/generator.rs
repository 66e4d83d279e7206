//! The load: `wrk` on core 1, with a script where ids vary.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::board::plan::{BoardCase, BoardServer};
use crate::board_data::ROWS;
use crate::tools::output;

/// Rows of a list.
pub(super) const LISTED: u32 = 20;
/// Requests that `wrk` sends at once for plaintext, as `TechEmpower` does.
const PIPELINED: u32 = 16;

/// The requests of a case. A place `%d` or `%015d` in the path takes a random number from 1 to `most`.
pub(super) struct Requests {
    pub(super) method: &'static str,
    pub(super) path: String,
    most: Option<u32>,
    at_once: u32,
}

/// The report of `wrk`, times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) requests: f64,
    pub(super) rate: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Requests {
    pub(super) fn of(server: BoardServer, case: BoardCase) -> Self {
        let (method, path, most) = match (case, server) {
            (BoardCase::Plaintext, _) => ("GET", "/plaintext", None),
            (BoardCase::Json, _) => ("GET", "/json", None),
            (BoardCase::Db, _) => ("GET", "/db", None),
            (BoardCase::Queries, _) => ("GET", "/queries?queries=20", None),
            (BoardCase::Fortunes, _) => ("GET", "/fortunes", None),
            (BoardCase::Updates, _) => ("GET", "/updates?queries=20", None),
            (BoardCase::List, BoardServer::PocketBase) => {
                let path = "/api/collections/world/records?perPage=20&skipTotal=1&page=%d";
                ("GET", path, Some(ROWS / LISTED))
            }
            (BoardCase::List, _) => ("GET", "/world?page=%d", Some(ROWS / LISTED)),
            (BoardCase::Record, _) => ("GET", record_path(server), Some(ROWS)),
            (BoardCase::Change | BoardCase::Fan(_), _) => {
                ("PATCH", record_path(server), Some(ROWS))
            }
        };
        let at_once = if case == BoardCase::Plaintext { PIPELINED } else { 1 };
        Self { method, path: path.to_owned(), most, at_once }
    }

    /// The path for this number.
    pub(super) fn path_of(&self, number: u32) -> String {
        self.path.replace("%015d", &format!("{number:015}")).replace("%d", &number.to_string())
    }

    fn script(&self) -> Option<String> {
        let Self { method, path, most, at_once } = self;
        if *at_once > 1 {
            return Some(format!(
                "init = function() local r = {{}} for i = 1, {at_once} do r[i] = wrk.format(\"{method}\", \"{path}\") end \
                 all = table.concat(r) end\nrequest = function() return all end\n"
            ));
        }
        let most = (*most)?;
        let target = format!("string.format(\"{path}\", math.random({most}))");
        let request = if *method == "GET" {
            format!("wrk.format(\"GET\", {target})")
        } else {
            let body = format!("string.format('{{\"randomNumber\":%d}}', math.random({ROWS}))");
            format!("wrk.format(\"{method}\", {target}, nil, {body})")
        };
        Some(format!(
            "math.randomseed(os.time())\nwrk.headers[\"Content-Type\"] = \"application/json\"\n\
             request = function() return {request} end\n"
        ))
    }

    /// Loads the server. `folder`: for the script.
    pub(super) fn send(
        &self,
        port: u16,
        connections: u64,
        seconds: u64,
        folder: &Path,
    ) -> Result<Report> {
        let mut command = Command::new("wrk");
        command.args(["-t1", "--latency", &format!("-c{connections}"), &format!("-d{seconds}s")]);
        if let Some(script) = self.script() {
            let file = folder.join("load.lua");
            fs::write(&file, script)?;
            command.arg("-s").arg(file);
        }
        // A script replaces the path.
        let path = if self.most.is_some() { "/" } else { &self.path };
        Report::parse(&output(command.arg(format!("http://127.0.0.1:{port}{path}")))?)
    }
}

const fn record_path(server: BoardServer) -> &'static str {
    match server {
        BoardServer::PocketBase => "/api/collections/world/records/%015d",
        _ => "/world/%d",
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

    #[test]
    fn varies_ids_and_numbers_by_a_script() {
        let change = Requests::of(BoardServer::PocketBase, BoardCase::Change);
        assert_eq!(change.path_of(7), "/api/collections/world/records/000000000000007");
        let script = change.script().unwrap();
        assert!(script.contains("wrk.format(\"PATCH\", string.format(\"/api"), "{script}");
        assert!(script.contains("'{\"randomNumber\":%d}'"), "{script}");
        assert!(Requests::of(BoardServer::Bine, BoardCase::Queries).script().is_none());
        let plain = Requests::of(BoardServer::Bine, BoardCase::Plaintext).script().unwrap();
        assert!(plain.contains("for i = 1, 16 do"), "{plain}");
    }
}
