//! `PocketBase`: its program, and the collection with the rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::board::client::{Reply, send, send_with};
use crate::board_data::ROWS;
use crate::tools::{Workspace, output};

pub(super) const VERSION: &str = "v0.40.4";
/// The path that answers as soon as the server is ready.
pub(super) const READY: &str = "/api/health";
const MODULE: &str = "github.com/pocketbase/pocketbase/examples/base";
const USER: &str = "bench@example.com";
const PASSWORD: &str = "only-on-loopback";
/// Rows of a batch.
const BATCH: u32 = 500;

/// Builds the program, unless it exists.
pub(super) fn install(workspace: &Workspace) -> Result<PathBuf> {
    workspace.build_go(MODULE, VERSION, "base")
}

/// The command of the server. The first call creates its user.
pub(super) fn command(workspace: &Workspace, folder: &Path, port: u16) -> Result<Vec<String>> {
    let program = install(workspace)?;
    let data = folder.join("data");
    if !data.exists() {
        fs::create_dir_all(&data)?;
        let mut command = Command::new(&program);
        command.args(["superuser", "upsert", USER, PASSWORD, "--dir"]).arg(&data);
        output(command.arg("--automigrate=false"))?;
    }
    let (program, data) = (program.display().to_string(), data.display().to_string());
    let listen = format!("127.0.0.1:{port}");
    let words = ["serve", "--http", &listen, "--dir", &data, "--automigrate=false"];
    Ok(std::iter::once(program).chain(words.map(str::to_owned)).collect())
}

/// Creates the collection with all rows, unless it exists.
pub(super) fn fill(port: u16, work: &Path) -> Result<()> {
    let path = "/api/collections/world/records?perPage=1";
    if send(port, "GET", path, None)?.status == 200 {
        return Ok(());
    }
    let user = json!({ "identity": USER, "password": PASSWORD });
    let log_in = "/api/collections/_superusers/auth-with-password";
    let token = send(port, "POST", log_in, Some(&user.to_string()))?.ok()?.json()?;
    let token = token["token"].as_str().context("PocketBase sent no token")?.to_owned();
    let field = format!("Authorization: {token}");
    let order = |method: &str, path: &str, body: &Value| -> Result<Reply> {
        // A batch is longer than a command line may be.
        let file = work.join("pocketbase.json");
        fs::write(&file, body.to_string())?;
        let body = format!("@{}", file.display());
        send_with(port, method, path, Some(&body), &[&field])?.ok()
    };
    let settings = json!({
        "batch": { "enabled": true, "maxRequests": BATCH, "timeout": 30 },
        // By default it stores a record of each request.
        "logs": { "maxDays": 0 },
    });
    order("PATCH", "/api/settings", &settings)?;
    let collection = json!({
        "name": "world",
        "type": "base",
        "fields": [{ "name": "randomNumber", "type": "number" }],
        "listRule": "",
        "viewRule": "",
        "updateRule": "",
    });
    order("POST", "/api/collections", &collection)?;
    let ids: Vec<u32> = (1..=ROWS).collect();
    for ids in ids.chunks(BATCH as usize) {
        let row = |id: &u32| {
            let body = json!({ "id": format!("{id:015}"), "randomNumber": id });
            json!({ "method": "POST", "url": "/api/collections/world/records", "body": body })
        };
        let requests: Vec<Value> = ids.iter().map(row).collect();
        order("POST", "/api/batch", &json!({ "requests": requests }))?;
    }
    let all = send(port, "GET", path, None)?.ok()?.json()?;
    ensure!(all["totalItems"] == ROWS, "PocketBase stored {} of {ROWS} rows", all["totalItems"]);
    Ok(())
}
