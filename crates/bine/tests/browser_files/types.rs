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

#[test]
#[ignore = "another test runs it as a process"]
fn write_types() {
    drop(app().run_with("usage", ["--types"]));
}

#[test]
fn declares_services_that_return_promises() {
    let folder = std::env::temp_dir().join(format!("bine-browser-types-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "types::write_types"]);
    // Cargo names the package to the programs that it runs.
    let status = command.env("CARGO_MANIFEST_DIR", &folder).output().unwrap().status;
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
