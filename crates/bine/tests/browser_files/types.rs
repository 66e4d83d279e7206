//! The types that `--types` writes for editors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shop::app;

/// The declarations that the TypeScript compiler checks files of the browser against.
fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../xtask/typescript/browser/browser-services.d.ts")
}

/// Tells a test that it is a process of another one.
const CHILD: &str = "BINE_TEST_WRITES_TYPES";

/// Does nothing as an ordinary test.
#[test]
fn write_types() {
    if std::env::var_os(CHILD).is_some() {
        assert!(app().run_with("usage", ["--types"]).is_success());
    }
}

#[test]
fn declares_services_that_return_promises() {
    let folder = std::env::temp_dir().join(format!("bine-browser-types-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "types::write_types"]);
    // Cargo names the package to the programs that it runs.
    let status =
        command.env("CARGO_MANIFEST_DIR", &folder).env(CHILD, "1").output().unwrap().status;
    assert!(status.success());
    let types = folder.join(".bine/types");
    let services = fs::read_to_string(types.join("browser-services.d.ts")).unwrap();
    let words = fs::read_to_string(types.join("browser.d.ts")).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let starter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/starter/types/browser.d.ts");
    assert_eq!(words, fs::read_to_string(starter).unwrap(), "a site in TSX has the same types");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(golden(), &services).unwrap();
    }
    let expected = fs::read_to_string(golden()).unwrap_or_default();
    assert_eq!(services, expected, "repeat with UPDATE=1, and look at the difference");
}
