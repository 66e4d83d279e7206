//! Tests of errors from the operating system: strace injects failures of disk calls.

use std::fs;
use std::path::Path;
use std::process::Command;

use bine_store::{Error, Store, Sync};

use crate::model::Model;
use crate::scratch::Scratch;
use crate::tables::{self, User};

/// The environment variable that marks a traced process of this test; it holds the folder.
const FOLDER_VARIABLE: &str = "BINE_SYSCALLS_FOLDER";
const THIS: &str = "syscalls::reports_system_errors_and_keeps_acknowledged_changes";
const CHANGES: usize = 12;

const FAILED: &str = "Input/output error (os error 5)): nothing is written until a restart";
const FULL: &str = "the disk is full: nothing was written";

#[test]
fn reports_system_errors_and_keeps_acknowledged_changes() {
    if let Ok(folder) = std::env::var(FOLDER_VARIABLE) {
        return change(Path::new(&folder));
    }
    if let Err(why) = traces() {
        println!("passed over: {why}");
        return;
    }
    let failed = |action: &str, file: u8| {
        format!("the disk failed (cannot {action} journal-000000000000000{file}.log: {FAILED}")
    };
    // A change without acknowledgment may be found, such as the third one here.
    let unsynced = failed("sync", 1);
    check(
        "fdatasync:error=EIO:when=4",
        &format!("2 made, 10 {unsynced}, 2 read; 3 found; the last call"),
    );
    // ENOSPC from a sync counts as a disk failure.
    let lines = unsynced
        .replace("Input/output error (os error 5)", "No space left on device (os error 28)");
    check(
        "fdatasync:error=ENOSPC:when=4",
        &format!("2 made, 10 {lines}, 2 read; 3 found; the last call"),
    );
    let lines = failed("write", 1);
    check(
        "pwrite64:error=EIO:when=7",
        &format!("1 made, 11 {lines}, 1 read; 1 found; the last call"),
    );
    let lines = failed("sync the folder of", 5);
    check("fsync:error=EIO:when=6", &format!("3 made, 9 {lines}, 3 read; 3 found; the last call"));
    let lines = failed("rename", 5);
    check(
        "/^rename:error=EIO:when=2",
        &format!("3 made, 9 {lines}, 3 read; 3 found; the last call"),
    );
    let lines = failed("reserve", 5);
    check(
        "fallocate:error=EIO:when=2",
        &format!("3 made, 9 {lines}, 3 read; 3 found; the last call"),
    );
    // When only room is missing, the next change succeeds again.
    for inject in [
        "pwrite64:error=ENOSPC:when=12",
        "pwrite64:error=EDQUOT:when=12",
        "fallocate:error=ENOSPC:when=2",
        "/^rename:error=ENOSPC:when=2",
    ] {
        check(inject, &format!("3 made, 1 {FULL}, 8 made, 11 read; 11 found; others after it"));
    }
    check(
        "fallocate:error=ENOSPC:when=2..4",
        &format!("3 made, 3 {FULL}, 6 made, 9 read; 9 found; others after it"),
    );
    // An interrupted call is repeated.
    check("pwrite64:error=EINTR:when=5..7", "12 made, 12 read; 12 found; others after it");
    // A start without room succeeds and writes its records with the first change.
    check("fallocate:error=ENOSPC:when=1", "12 made, 12 read; 12 found; others after it");
    check(
        "fallocate:error=ENOSPC:when=1..3",
        &format!("2 {FULL}, 10 made, 10 read; 10 found; others after it"),
    );
}

/// Runs a program with the failing calls of `inject`. Compares the outcome of each change, the rows
/// that the program reads at its end, the rows that a later program finds, and whether the failing
/// call was the last.
#[track_caller]
fn check(inject: &str, expected: &str) {
    let scratch = Scratch::new("syscalls");
    let folder = scratch.0.join("tables");
    fs::create_dir_all(&scratch.0).unwrap();
    let trace = scratch.0.join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=pwrite64,fdatasync,fsync,fallocate,/^rename"]);
    // Not the times of records: the second of a change decides whether an entry is written.
    command.arg("-P").arg(&scratch.0).arg("-P").arg(&folder);
    for name in (1..=CHANGES).map(|number| format!("journal-{number:016x}.log")) {
        command.arg("-P").arg(folder.join(&name));
        command.arg("-P").arg(folder.join(name + ".new"));
    }
    for name in ["synced", "lock"] {
        command.arg("-P").arg(folder.join(name));
    }
    command.args(["-e", "signal=none", "-e", &format!("inject={inject}"), "-o"]).arg(&trace);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", THIS, "--nocapture"]);
    let output = command.env(FOLDER_VARIABLE, &folder).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> =
        lines.lines().filter_map(|line| line.strip_prefix("outcome: ")).collect();
    let lines = lines.chunk_by(|one, other| one == other);
    let lines: Vec<String> = lines.map(|same| format!("{} {}", same.len(), same[0])).collect();
    let trace = fs::read_to_string(trace).unwrap();
    let last = trace.lines().last().unwrap();
    let last = if last.ends_with("(INJECTED)") { "the last call" } else { "others after it" };
    let found = Model::of(&open(&folder).expect("its calls do not fail").read()).users.len();
    assert_eq!(format!("{}; {found} found; {last}", lines.join(", ")), expected, "{inject}");
}

/// Whether strace can inject failures here.
fn traces() -> Result<(), String> {
    let mut command = Command::new("strace");
    let command =
        command.args(["-f", "-qq", "-e", "inject=fsync:error=EIO", "-o", "/dev/null", "true"]);
    let output = command.output().map_err(|error| format!("no strace: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("strace cannot trace: {said}")) }
}

fn open(folder: &Path) -> Result<Store, String> {
    // A segment holds four changes.
    let options = tables::options().segment(512).sync(Sync::Commit);
    Store::open(folder, options, &mut |_, _| {})
}

/// Makes changes and prints the outcome of each.
fn change(folder: &Path) {
    let store = match open(folder) {
        Ok(store) => store,
        Err(why) => return println!("outcome: {why}"),
    };
    let mut read = 0;
    for number in 0..CHANGES {
        match store.insert(User::new(&format!("user {number:02}"), None)).wait() {
            Ok(_) => {
                read += 1;
                println!("outcome: made");
            }
            Err(error) => {
                assert!(matches!(error, Error::Full | Error::Broken(_)));
                println!("outcome: {error}");
            }
        }
        assert_eq!(Model::of(&store.read()).users.len(), read, "reads go on");
    }
    // One line for each row.
    (0..read).for_each(|_| println!("outcome: read"));
}
