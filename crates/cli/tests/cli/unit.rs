//! Tests of the systemd units in `packaging`.

use std::path::PathBuf;
use std::process::Command;

use crate::harness::Folder;

fn unit(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn has_only_valid_lines_in_units() {
    for name in ["bine.service", "bine.socket"] {
        for line in unit(name).lines() {
            let is_section = line.starts_with('[') && line.ends_with(']');
            let is_setting = line.split_once('=').is_some_and(|(key, value)| {
                !value.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
            });
            assert!(line.is_empty() || line.starts_with('#') || is_section || is_setting, "{line}");
        }
    }
    assert!(unit("bine.socket").contains("\nAccept=no\n"));
}

/// systemd itself verifies the units where it is installed.
#[test]
fn passes_verification_by_systemd() {
    let folder = Folder::new();
    // Replaces the path, so that the program need not be installed.
    let service = unit("bine.service").replace("/usr/bin/bine", env!("CARGO_BIN_EXE_bine"));
    let service = folder.write("bine.service", service.as_bytes());
    let socket = folder.write("bine.socket", unit("bine.socket").as_bytes());
    let verify = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args([service, socket])
        .output();
    let Ok(verified) = verify else { return };
    let output = String::from_utf8_lossy(&verified.stderr);
    let complaints: Vec<&str> = output.lines().filter(|line| line.contains("bine.")).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}
