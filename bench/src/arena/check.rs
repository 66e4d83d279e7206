//! Checks that all servers give the right responses before their times are compared.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::cases::{ACCEPTS_FILE, ACCEPTS_LIST, ArenaCase, Listed, SUM, list_path};
use super::files::FILES;
use super::site::ArenaServer;
use crate::tools::output;

/// Seconds for a response.
const PATIENCE: &str = "30";

/// A response with the status 200.
struct Fetched {
    encoding: Option<String>,
    /// The length of the content as it was sent.
    sent: usize,
    content: Vec<u8>,
}

/// Checks all requests of a case, and returns the mean length of the contents as they were sent.
pub(super) fn check(server: ArenaServer, case: ArenaCase, port: u16, files: &Path) -> Result<f64> {
    let folder = files.parent().context("no folder")?;
    let fetch = |path: &str, words: &[&str]| -> Result<Fetched> {
        fetch(port, path, words, folder).with_context(|| format!("{path} of {}", server.name()))
    };
    let mut fetched = Vec::new();
    match case {
        ArenaCase::Baseline | ArenaCase::ShortLived => {
            let body = ["-H", "Content-Type: text/plain", "--data-binary", "20"];
            let chunked = [&body[..], &["-H", "Transfer-Encoding: chunked"]].concat();
            for (words, expected) in [(&[][..], "55"), (&body, "75"), (&chunked, "75")] {
                let sum = fetch(SUM, words)?;
                ensure!(sum.content == expected.as_bytes(), "the sum is not {expected}");
                fetched.push(sum);
            }
        }
        ArenaCase::Json | ArenaCase::JsonCompressed => {
            let is_compressed = case == ArenaCase::JsonCompressed;
            let words: &[&str] = if is_compressed { &["-H", ACCEPTS_LIST] } else { &[] };
            for list in case.lists() {
                let response = fetch(&list_path(*list), words)?;
                ensure!(
                    response.encoding.is_some() == is_compressed,
                    "the encoding is {:?}",
                    response.encoding
                );
                check_list(&response.content, *list)?;
                fetched.push(response);
            }
        }
        ArenaCase::Static => {
            for file in &FILES {
                let response = fetch(&format!("/{}", file.name), &["-H", ACCEPTS_FILE])?;
                ensure!(
                    response.encoding.is_none() == file.is_compressed(),
                    "the encoding of {} is {:?}",
                    file.name,
                    response.encoding
                );
                let is_same = response.content == fs::read(files.join(file.name))?;
                ensure!(is_same, "{} has other bytes", file.name);
                fetched.push(response);
            }
        }
    }
    let sent: usize = fetched.iter().map(|response| response.sent).sum();
    Ok(sent as f64 / fetched.len() as f64)
}

fn fetch(port: u16, path: &str, words: &[&str], folder: &Path) -> Result<Fetched> {
    let (head, body) = (folder.join("checked.head"), folder.join("checked.body"));
    let mut command = Command::new("curl");
    command.args(["-sS", "--fail", "--max-time", PATIENCE]).args(words);
    command.arg("-D").arg(&head).arg("-o").arg(&body);
    output(command.arg(format!("http://127.0.0.1:{port}{path}")))?;
    let (head, sent) = (fs::read_to_string(head)?, fs::read(&body)?);
    let field = |line: &str| -> Option<String> {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-encoding").then(|| value.trim().to_owned())
    };
    let encoding = head.lines().find_map(field);
    let content = match encoding.as_deref() {
        None => sent.clone(),
        Some("gzip") => decoded("gzip", &body)?,
        Some("br") => decoded("brotli", &body)?,
        Some(other) => bail!("the encoding is {other}, which the request does not accept"),
    };
    Ok(Fetched { encoding, sent: sent.len(), content })
}

fn decoded(tool: &str, file: &Path) -> Result<Vec<u8>> {
    let input = fs::File::open(file)?;
    let done = Command::new(tool).args(["--decompress", "--stdout"]).stdin(input).output()?;
    ensure!(done.status.success(), "{tool}: {}", String::from_utf8_lossy(&done.stderr).trim());
    Ok(done.stdout)
}

/// Checks the number of items, and their prices.
fn check_list(content: &[u8], (count, multiplier): Listed) -> Result<()> {
    let list: Value = serde_json::from_slice(content)?;
    let items = list["items"].as_array().context("no items")?;
    ensure!(items.len() == count && list["count"] == count, "not {count} items");
    for item in items {
        let number = |name: &str| item[name].as_u64().with_context(|| format!("no {name}: {item}"));
        let total = number("price")? * number("quantity")? * u64::from(multiplier);
        ensure!(number("total")? == total, "the total is not {total}: {item}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_lists_with_wrong_counts_and_totals() {
        let list = br#"{"items":[{"price":3,"quantity":4,"total":24}],"count":1}"#;
        check_list(list, (1, 2)).unwrap();
        for wrong in [(2, 2), (1, 3)] {
            assert!(check_list(list, wrong).is_err(), "{wrong:?}");
        }
        assert!(check_list(b"{}", (0, 1)).is_err());
    }
}
