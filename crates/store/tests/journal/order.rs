//! Tests of the order of system calls that durability requires, and of failed calls. Each test runs
//! itself under strace.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bine_store::disk::RealFolder;
use bine_store::journal::{Error, FileJournal, Journal, Options};

use crate::scratch::Scratch;

/// The environment variable that marks a traced process of this test; it holds the folder.
const FOLDER_VARIABLE: &str = "BINE_ORDER_FOLDER";

#[test]
fn syncs_data_before_names_and_names_before_acknowledging() {
    if let Ok(folder) = std::env::var(FOLDER_VARIABLE) {
        return write_each_kind_of_file(Path::new(&folder));
    }
    let test = "syncs_data_before_names_and_names_before_acknowledging";
    let trace = "trace=pwrite64,fdatasync,fsync,rename,renameat,renameat2";
    let Some(calls) = watch(test, &[trace]) else { return };
    let segment = "journal-0000000000000001.log";
    let snapshot = "snapshot-0000000000000001.bin";
    let expected = [
        format!("pwrite {segment}.new"),
        format!("sync {segment}.new"),
        format!("rename {segment}"),
        "sync the folder".to_owned(),
        // The time of the group's first record, which is never synced.
        "pwrite times-0000000000000001.bin".to_owned(),
        // The group is written and synced before it is acknowledged.
        format!("pwrite {segment}"),
        format!("sync {segment}"),
        // The mark names only synced records, and needs no sync itself.
        "pwrite synced".to_owned(),
        format!("pwrite {snapshot}.new"),
        format!("sync {snapshot}.new"),
        format!("rename {snapshot}"),
        "sync the folder".to_owned(),
    ];
    let begin = calls.iter().position(|call| *call == expected[0]).unwrap_or(calls.len());
    assert_eq!(calls[begin..], expected);
}

#[test]
fn never_syncs_again_after_a_failure() {
    if let Ok(folder) = std::env::var(FOLDER_VARIABLE) {
        let mut journal = open(Path::new(&folder));
        assert_eq!(write(&mut journal).ok(), Some(1));
        for _ in 0..3 {
            let error = write(&mut journal).expect_err("its sync fails");
            assert!(matches!(error, Error::Broken { .. }), "{error}");
        }
        return;
    }
    let test = "never_syncs_again_after_a_failure";
    let inject = "inject=fdatasync:error=EIO:when=2";
    let Some(calls) = watch(test, &["trace=fdatasync", inject]) else { return };
    assert_eq!(calls, ["sync journal-0000000000000001.log"; 2]);
}

#[test]
fn retries_a_segment_with_the_next_group() {
    if let Ok(folder) = std::env::var(FOLDER_VARIABLE) {
        let mut journal = open(Path::new(&folder));
        let error = write(&mut journal).expect_err("there is no room");
        assert!(matches!(error, Error::Full { .. }), "{error}");
        assert_eq!(write(&mut journal).ok(), Some(1));
        return;
    }
    let test = "retries_a_segment_with_the_next_group";
    // For segments of 16 MiB, 4 MiB, 1 MiB, and so on down to 4 KiB.
    let inject = "inject=fallocate:error=ENOSPC:when=1..7";
    let Some(calls) = watch(test, &["trace=fallocate,fdatasync", inject]) else { return };
    assert_eq!(calls.last().map(String::as_str), Some("sync journal-0000000000000001.log"));
}

/// Runs this test under strace and returns the calls on its folder. `None`, with a message, if
/// strace is missing or not allowed.
fn watch(test: &str, expressions: &[&str]) -> Option<Vec<String>> {
    let scratch = Scratch::new(test);
    let mut command = Command::new("strace");
    command.args(["-f", "-y"]);
    for expression in expressions {
        command.args(["-e", expression]);
    }
    command.arg(std::env::current_exe().expect("this test is a program"));
    command.args(["--exact", &format!("order::{test}")]).env(FOLDER_VARIABLE, &scratch.0);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: strace cannot be started: {error}");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains("PTRACE_TRACEME") || text.contains("ptrace(") {
        println!("skipped: strace may not watch: {text}");
        return None;
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{text}");
    let folder = scratch.0.display().to_string();
    Some(text.lines().filter_map(|line| call(line, &folder)).collect())
}

fn write_each_kind_of_file(folder: &Path) {
    let mut journal = open(folder);
    assert_eq!(write(&mut journal).ok(), Some(1));
    let mut writer = journal.snapshot(1).expect("the disk is well");
    writer.block(b"a").expect("the disk is well");
    writer.finish().expect("the disk is well");
}

fn open(folder: &Path) -> FileJournal {
    let folder = Arc::new(RealFolder::open(folder).expect("it can be made"));
    let opened = FileJournal::open(folder, Options::default(), &mut |_| Ok(()));
    opened.expect("the disk is well").journal
}

fn write(journal: &mut FileJournal) -> Result<u64, Error> {
    journal.append(b"a")?;
    journal.write(true)
}

/// A system call on this folder: the operation and the file's name.
fn call(line: &str, folder: &str) -> Option<String> {
    let line = line.split_once("] ").map_or(line, |(_, behind)| behind);
    let (name, rest) = line.split_once('(')?;
    let path = rest.split_once(folder)?.1;
    let file: String =
        path.trim_start_matches('/').chars().take_while(|char| !"\"><".contains(*char)).collect();
    Some(match name {
        // With -y strace shows a renamed file by its current name.
        "fallocate" => format!("reserve {file}"),
        "pwrite64" => format!("pwrite {file}"),
        "fsync" | "fdatasync" if file.is_empty() => "sync the folder".to_owned(),
        "fsync" | "fdatasync" => format!("sync {file}"),
        _ => {
            let to = rest.rsplit_once(", \"").map_or("", |(_, to)| to);
            format!("rename {}", to.split('"').next().unwrap_or_default())
        }
    })
}
