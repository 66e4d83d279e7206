//! Checks HTTP/2 with the public suite, two clients and a browser.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::program::Program;
use super::{run_checks, site, tool_script};
use crate::report::Tally;
use crate::{paths, process, tools};

/// The output of curl after each response: the version, the status, and the connections that it
/// opened.
const CODES: &str = "%{http_version} %{response_code} %{num_connects}\n";

pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let site = site()?;
    let serve = |options: &[&str]| {
        let mut command = Command::new(paths::release("bine"));
        command.arg("serve").arg(&site).args(["--listen", "127.0.0.1:0"]).args(options);
        Program::start(command)
    };
    let secure = serve(&["--tls", "self-signed"])?;
    let plain = serve(&[])?;
    check_suite(tally, &secure)?;
    tally.check("curl keeps one connection of HTTP/2 with TLS", curl_keeps(&secure));
    tally.check("curl is served over HTTP/2 without TLS", curl_knows(&plain));
    tally.check("nghttp is served over HTTP/2 with TLS", nghttp(&secure, "https"));
    tally.check("nghttp is served over HTTP/2 without TLS", nghttp(&plain, "http"));
    tally.check("bine serve ends on SIGTERM after HTTP/2", secure.end().and(plain.end()));
    let board = paths::release("examples/board");
    run_checks(tally, tool_script(tools::selenium(), "http2_browser.py").arg(board))
}

/// How often the suite runs at most. Some tests of the suite send a frame that the server must
/// reject soon after a request. If the whole response precedes that frame, the stream has ended,
/// and they wait in vain. Only such failures lead to a further run.
const SUITE_RUNS: u32 = 3;

/// Runs the suite with its strict tests, over TLS.
fn check_suite(tally: &mut Tally, server: &Program) -> Result<()> {
    let address = server.address();
    let mut h2spec = Command::new(tools::h2spec());
    h2spec.args(["--tls", "--insecure", "--strict", "--path", "/notes.txt"]);
    // The default of 2 seconds is short for a busy machine.
    h2spec.args(["--timeout", "5"]);
    h2spec.args(["--host", &address.ip().to_string(), "--port", &address.port().to_string()]);
    for run in 1..=SUITE_RUNS {
        let output = h2spec
            .output()
            .with_context(|| format!("cannot start {}", process::command_line(&h2spec)))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let (passed, skipped, failed) = counts(&text).context("h2spec printed no counts")?;
        ensure!(passed + skipped + failed > 100, "h2spec ran few tests: {text}");
        if failed > 0 {
            println!("{}", text.split_once("Failures:").map_or(&*text, |(_, failures)| failures));
        }
        if run == SUITE_RUNS || failed == 0 || failed != overtaken(&text) {
            tally.passed += passed;
            tally.ignored += skipped;
            tally.failed += failed;
            break;
        }
    }
    Ok(())
}

/// The number of failed tests that saw the response to their request and no error after it.
fn overtaken(text: &str) -> u32 {
    let failures = text.split_once("Failures:").map_or("", |(_, failures)| failures);
    let seen = failures.lines().filter_map(|line| line.trim().strip_prefix("Actual: "));
    let is_response =
        |seen: &&str| seen.starts_with("DATA Frame") || seen.starts_with("HEADERS Frame");
    seen.filter(is_response).count() as u32
}

/// Reads the line `146 tests, 146 passed, 0 skipped, 0 failed`.
fn counts(text: &str) -> Option<(u32, u32, u32)> {
    let line = text.lines().rev().find(|line| line.contains(" tests, "))?;
    let count = |word: &str| {
        let part = line.split(", ").find(|part| part.ends_with(word))?;
        part.split_whitespace().next()?.parse().ok()
    };
    Some((count("passed")?, count("skipped")?, count("failed")?))
}

fn curl_keeps(server: &Program) -> Result<()> {
    let url = format!("https://{}/notes.txt", server.address());
    let output = super::curl(&["--insecure", "--http2", "-w", CODES, &url, &url])?;
    let one = "A file of one line.\n2 200";
    ensure!(output == format!("{one} 1\n{one} 0\n"), "curl received: {output}");
    Ok(())
}

/// One request only: curl 7.88 cannot keep a connection of prior knowledge, with no server.
fn curl_knows(server: &Program) -> Result<()> {
    let url = format!("http://{}/notes.txt", server.address());
    let output = super::curl(&["--http2-prior-knowledge", "-w", CODES, &url])?;
    ensure!(output == "A file of one line.\n2 200 1\n", "curl received: {output}");
    Ok(())
}

fn nghttp(server: &Program, scheme: &str) -> Result<()> {
    let url = |path: &str| format!("{scheme}://{}{path}", server.address());
    let mut nghttp = Command::new("nghttp");
    nghttp.args(["--no-verify-peer", "--timeout=10", &url("/notes.txt"), &url("/style.css")]);
    let output = nghttp
        .output()
        .with_context(|| format!("cannot start {}", process::command_line(&nghttp)))?;
    let output = String::from_utf8_lossy(&output.stdout);
    for content in ["A file of one line.\n", "p { color: green }\n"] {
        ensure!(output.contains(content), "nghttp received: {output}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_counts_of_the_suite() {
        let text = "Finished in 0.5 seconds\n146 tests, 144 passed, 1 skipped, 1 failed\n";
        assert_eq!(counts(text), Some((144, 1, 1)));
        assert_eq!(counts("Error: dial tcp"), None);
    }

    #[test]
    fn counts_failures_after_a_whole_response() {
        let failure =
            |actual: &str| format!("  x 9: closed\n   Expected: GOAWAY\n     Actual: {actual}\n");
        let response = failure("DATA Frame (length:20, flags:0x01, stream_id:1)");
        let silence = failure("Timeout");
        // The suite prints a failed test where it runs, and again at the end.
        let text = format!("{response}{silence}\nFailures:\n{response}{silence}\n3 tests");
        assert_eq!(overtaken(&text), 1);
        assert_eq!(overtaken(&response), 0, "no list of failures");
    }
}
