//! Decides whether the real system calls come in the order that durability needs.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bine_store::disk::RealFolder;
use bine_store::journal::{FileJournal, Journal, Options};

use crate::kills::Scratch;

/// Says to a process of this test's own that it is the one to be watched, and where.
const PLACE: &str = "BINE_ORDER_FOLDER";

#[test]
fn bytes_are_durable_before_their_name_and_the_name_before_the_answer() {
    if let Ok(folder) = std::env::var(PLACE) {
        return write_each_kind_of_file(Path::new(&folder));
    }
    let scratch = Scratch::new("order");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-e", "trace=pwrite64,fdatasync,fsync,rename,renameat,renameat2"]);
    command.arg(std::env::current_exe().expect("this test is a program"));
    command.args([
        "--exact",
        "order::bytes_are_durable_before_their_name_and_the_name_before_the_answer",
    ]);
    let output = match command.env(PLACE, &scratch.0).output() {
        Ok(output) if output.status.success() => output,
        refused => {
            println!("skipped: strace is not there or may not watch: {refused:?}");
            return;
        }
    };
    let text = String::from_utf8_lossy(&output.stderr);
    let folder = scratch.0.display().to_string();
    let calls: Vec<String> = text.lines().filter_map(|line| call(line, &folder)).collect();
    let segment = "journal-0000000000000001.log";
    let snapshot = "snapshot-0000000000000001.bin";
    let expected = [
        format!("pwrite {segment}.new"),
        format!("sync {segment}.new"),
        format!("rename {segment}"),
        "sync the folder".to_owned(),
        // The group, its sync, and only then is it acknowledged.
        format!("pwrite {segment}"),
        format!("sync {segment}"),
        format!("pwrite {snapshot}.new"),
        format!("sync {snapshot}.new"),
        format!("rename {snapshot}"),
        "sync the folder".to_owned(),
    ];
    let begin = calls.iter().position(|call| *call == expected[0]).unwrap_or(calls.len());
    assert_eq!(calls[begin..], expected, "{text}");
}

fn write_each_kind_of_file(folder: &Path) {
    let folder = Arc::new(RealFolder::open(folder).expect("it can be made"));
    let opened = FileJournal::open(folder, Options::default(), &mut |_| Ok(()));
    let mut journal = opened.expect("the disk is well").journal;
    journal.append(b"a").expect("the disk is well");
    assert_eq!(journal.write(true).expect("the disk is well"), 1);
    let mut writer = journal.snapshot(1).expect("the disk is well");
    writer.block(b"a").expect("the disk is well");
    writer.finish().expect("the disk is well");
}

/// A system call on this folder, in a word and the file's name.
fn call(line: &str, folder: &str) -> Option<String> {
    let line = line.split_once("] ").map_or(line, |(_, behind)| behind);
    let (name, rest) = line.split_once('(')?;
    let path = rest.split_once(folder)?.1;
    let file: String =
        path.trim_start_matches('/').chars().take_while(|char| !"\"><".contains(*char)).collect();
    Some(match name {
        // With -y a file that was renamed is shown by its name of now.
        "pwrite64" => format!("pwrite {file}"),
        "fsync" | "fdatasync" if file.is_empty() => "sync the folder".to_owned(),
        "fsync" | "fdatasync" => format!("sync {file}"),
        _ => {
            let to = rest.rsplit_once(", \"").map_or("", |(_, to)| to);
            format!("rename {}", to.split('"').next().unwrap_or_default())
        }
    })
}
