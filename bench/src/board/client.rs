//! Single requests by curl, which reads any kind of response.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::tools::output;

/// Seconds for a response.
const PATIENCE: &str = "60";

/// A response of any status.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) media_type: String,
    pub(super) body: String,
}

/// Sends a request, with a body of JSON if there is one.
pub(super) fn send(port: u16, method: &str, path: &str, body: Option<&str>) -> Result<Reply> {
    send_with(port, method, path, body, &[])
}

/// The same with further header fields. A body `@FILE` is the content of a file.
pub(super) fn send_with(
    port: u16,
    method: &str,
    path: &str,
    body: Option<&str>,
    fields: &[&str],
) -> Result<Reply> {
    let mut command = Command::new("curl");
    command.args(["-sS", "--max-time", PATIENCE, "-X", method]);
    // After the body, which may have any bytes but these at its end.
    command.args(["-w", "\n%{http_code} %{content_type}"]);
    if let Some(body) = body {
        command.args(["-H", "Content-Type: application/json", "--data-binary", body]);
    }
    for field in fields {
        command.args(["-H", field]);
    }
    let text = output(command.arg(format!("http://127.0.0.1:{port}{path}")))?;
    Reply::parse(&text)
}

impl Reply {
    fn parse(text: &str) -> Result<Self> {
        let (body, end) = text.rsplit_once('\n').context("curl printed no status")?;
        let (status, media_type) = end.split_once(' ').unwrap_or((end, ""));
        Ok(Self {
            status: status.parse().with_context(|| format!("curl printed `{end}`"))?,
            media_type: media_type.to_owned(),
            body: body.to_owned(),
        })
    }

    /// Itself, if the status is 200 or 204.
    pub(super) fn ok(self) -> Result<Self> {
        let Self { status, body, .. } = &self;
        ensure!(matches!(status, 200 | 204), "the status is {status}: {}", body.trim());
        Ok(self)
    }

    pub(super) fn json(&self) -> Result<Value> {
        let kind = self.media_type.starts_with("application/json");
        ensure!(kind, "the media type is `{}`, not JSON", self.media_type);
        serde_json::from_str(&self.body).with_context(|| format!("no JSON: {}", self.body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_the_body_from_the_status() {
        let reply = Reply::parse("{\"a\":\n1}\n200 application/json").unwrap();
        assert_eq!((reply.status, &*reply.media_type), (200, "application/json"));
        assert_eq!(reply.json().unwrap()["a"], 1);
        let reply = Reply::parse("gone\n410 text/plain").unwrap();
        assert!(reply.json().is_err());
        assert!(reply.ok().err().unwrap().to_string().contains("410: gone"));
        assert!(Reply::parse("").is_err());
    }
}
