//! Checks the TLS of a running server with `testssl`.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{paths, process};

/// The program, of Debian's package `testssl.sh`.
const TESTSSL: &str = "testssl";
/// The longest wait of testssl for a connection, in seconds.
const TIMEOUT: &str = "10";
/// The severities above `LOW`, and that of a check that did not run to its end.
const SEVERE: [&str; 4] = ["MEDIUM", "HIGH", "CRITICAL", "FATAL"];
/// Findings that a server has by intent (docs/guide/security.md), or by a self-signed certificate.
const ACCEPTED: [Accepted; 3] = [
    Accepted {
        id: "cipher_order",
        severity: "HIGH",
        reason: "the client chooses among suites that are all strong, as Mozilla recommends",
    },
    Accepted {
        id: "cert_chain_of_trust",
        severity: "CRITICAL",
        reason: "the certificate is self-signed",
    },
    Accepted {
        id: "cert_revocation",
        severity: "HIGH",
        reason: "the self-signed certificate names no list of revoked certificates",
    },
];

/// A finding that does not fail the check. With any other severity it does.
struct Accepted {
    id: &'static str,
    severity: &'static str,
    reason: &'static str,
}

/// Examines the server at `url`, which takes about four minutes. Fails at a finding above `LOW` that
/// is not accepted.
pub(crate) fn run(url: &str) -> Result<()> {
    if !process::is_available(TESTSSL, &["--version"]) {
        bail!("testssl is missing: sudo apt-get install testssl.sh");
    }
    let path = paths::target().join("testssl.json");
    // The program adds to an existing file.
    if path.exists() {
        fs::remove_file(&path).context("cannot remove the findings of an earlier run")?;
    }
    let mut command = Command::new(TESTSSL);
    command.args(["--quiet", "--warnings", "batch", "--color", "0", "--connect-timeout", TIMEOUT]);
    command.args(["--openssl-timeout", TIMEOUT, "--jsonfile"]).arg(&path).arg(url);
    // Its status is the number of findings.
    command.stdin(Stdio::null()).status().context("cannot start testssl")?;
    let text = fs::read_to_string(&path).context("testssl has written no findings")?;
    let findings = severe(&text).context("the findings of testssl cannot be read")?;
    if !findings.is_empty() {
        bail!("testssl has findings above low at {url}:\n{}", findings.join("\n"));
    }
    println!("testssl has no finding above low, apart from those that are accepted:");
    for Accepted { id, severity, reason } in ACCEPTED {
        println!("  {id} ({severity}): {reason}");
    }
    Ok(())
}

/// The findings above `LOW` that are not accepted. Fails if no check has passed, as with a server
/// that does not answer.
fn severe(text: &str) -> Result<Vec<String>> {
    let findings: Vec<Value> = serde_json::from_str(text)?;
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    if !findings.iter().any(|finding| text(finding, "severity") == "OK") {
        bail!("no check has passed: is there a server with TLS?");
    }
    let is_severe = |finding: &&Value| {
        let (id, severity) = (text(finding, "id"), text(finding, "severity"));
        let is_accepted = |each: &Accepted| each.id == id && each.severity == severity;
        SEVERE.contains(&&*severity) && !ACCEPTED.iter().any(is_accepted)
    };
    let shown = findings.iter().filter(is_severe).map(|finding| {
        format!(
            "{} {}: {}",
            text(finding, "severity"),
            text(finding, "id"),
            text(finding, "finding")
        )
    });
    Ok(shown.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &str, severity: &str) -> String {
        format!(r#"{{"id": "{id}", "severity": "{severity}", "finding": "a text"}}"#)
    }

    #[test]
    fn finds_severe_findings_that_are_not_accepted() {
        let good = finding("heartbleed", "OK");
        let low = finding("DNS_CAArecord", "LOW");
        let accepted = ACCEPTED.map(|each| finding(each.id, each.severity)).join(",");
        let text = format!("[{good},{low},{accepted}]");
        assert_eq!(severe(&text).unwrap(), [""; 0]);
        let worse = format!("[{good},{}]", finding("cipher_order", "CRITICAL"));
        assert_eq!(severe(&worse).unwrap(), ["CRITICAL cipher_order: a text"]);
        for severity in SEVERE {
            let text = format!("[{good},{}]", finding("RC4", severity));
            assert_eq!(severe(&text).unwrap(), [format!("{severity} RC4: a text")]);
        }
    }

    #[test]
    fn rejects_a_run_without_a_passed_check() {
        for text in ["[]".to_owned(), format!("[{}]", finding("scanProblem", "WARN"))] {
            assert!(severe(&text).unwrap_err().to_string().contains("no check has passed"));
        }
        assert!(severe("no JSON").is_err());
    }
}
