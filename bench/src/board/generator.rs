//! The load: `wrk` on core 1, with a script where ids vary.

use std::path::Path;

use anyhow::Result;

use crate::board::plan::{BoardCase, BoardServer};
use crate::board_data::ROWS;
use crate::wrk::{Load, Report};

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
        // A script replaces the path.
        let path = if self.most.is_some() { "/" } else { &self.path };
        Load { port, connections, seconds, path, script: self.script(), folder }.send()
    }
}

const fn record_path(server: BoardServer) -> &'static str {
    match server {
        BoardServer::PocketBase => "/api/collections/world/records/%015d",
        _ => "/world/%d",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
