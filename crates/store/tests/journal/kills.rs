//! Tests that a killed process loses no acknowledged record, on a real disk.
//!
//! The environment variable `BINE_KILLS` sets the number of killed processes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bine_store::disk::RealFolder;
use bine_store::journal::{Error, FileJournal, Journal, Options, RecoveryEvent};

use crate::random::Random;
use crate::scratch::Scratch;

const KILLS: u64 = 50;
/// The environment variable that marks a process to be killed; it holds the folder.
const FOLDER_VARIABLE: &str = "BINE_KILLS_FOLDER";
/// Small segments, so that kills also hit their creation.
const SEGMENT: Options = Options { segment: 16 * 1024 };

#[test]
fn keeps_acknowledged_records_after_a_kill() {
    if let Ok(folder) = std::env::var(FOLDER_VARIABLE) {
        return write_until_killed(Path::new(&folder));
    }
    let kills = std::env::var("BINE_KILLS").ok().and_then(|text| text.parse().ok());
    let scratch = Scratch::new("kills");
    let mut random = Random(1);
    let mut last = 0;
    let mut torn = 0;
    for _ in 0..kills.unwrap_or(KILLS) {
        let mut child = Killed(own_process(&scratch.0));
        let mut lines = BufReader::new(child.0.stdout.take().expect("it is piped")).lines();
        let mut acknowledged = last;
        let mut acknowledgments =
            lines.by_ref().map_while(Result::ok).filter_map(|line| number(&line));
        // Kill after a random number of acknowledgments.
        for _ in 0..=random.below(40) {
            acknowledged = acknowledgments.next().expect("it writes until it is killed");
        }
        drop(child);
        // Acknowledgments that it printed before it died.
        acknowledged = acknowledgments.last().unwrap_or(acknowledged);
        let (opened, found) = open(&scratch.0).expect("a kill damages nothing");
        torn += opened.1;
        last = found;
        assert!(last >= acknowledged, "{acknowledged} was acknowledged, {last} is the last found");
        drop(opened);
    }
    println!("{last} records, {torn} torn ends");
}

#[test]
fn names_the_process_that_holds_the_folder() {
    let scratch = Scratch::new("lock");
    let mut child = Killed(own_process(&scratch.0));
    let process = child.0.id().to_string();
    let mut lines = BufReader::new(child.0.stdout.take().expect("it is piped")).lines();
    let first = lines.by_ref().map_while(Result::ok).find_map(|line| number(&line));
    first.expect("it writes until it is killed");
    let error = open(&scratch.0).map(|_| ()).expect_err("the folder is in use");
    assert!(error.to_string().contains(&format!("(process {process})")), "{error}");
    drop(child);
    open(&scratch.0).expect("its lock has died with it");
}

/// Writes groups, and prints the last record of each group once it is durable.
fn write_until_killed(folder: &Path) {
    let (opened, last) = open(folder).expect("the disk is well");
    let mut journal = opened.0;
    let mut out = std::io::stdout();
    let mut random = Random(last + 1);
    let mut next = last + 1;
    let mut groups = 0;
    loop {
        for _ in 0..=random.below(20) {
            journal.append(&record(next)).expect("the disk is well");
            next += 1;
        }
        let durable = journal.write(true).expect("the disk is well");
        // The test harness has already printed on this line.
        if writeln!(out, "\nacknowledged {durable}").and_then(|()| out.flush()).is_err() {
            return;
        }
        groups += 1;
        if groups % 16 == 0 {
            let mut writer = journal.snapshot(durable).expect("the disk is well");
            writer.block(&durable.to_le_bytes()).expect("the disk is well");
            writer.finish().expect("the disk is well");
            journal.compact(durable).expect("the disk is well");
        }
    }
}

type Open = ((FileJournal, usize), u64);

/// Opens the journal, checks each record, and returns the last.
fn open(folder: &Path) -> Result<Open, Error> {
    let mut last = 0;
    let folder = Arc::new(RealFolder::open(folder).expect("it can be made"));
    let opened = FileJournal::open(folder, SEGMENT, &mut |loaded| {
        match loaded {
            RecoveryEvent::Block(block) => {
                last = u64::from_le_bytes(block.try_into().expect("8 bytes"));
            }
            RecoveryEvent::Record(sequence, bytes) => {
                assert_eq!((sequence, bytes), (last + 1, &record(sequence)[..]));
                last = sequence;
            }
            RecoveryEvent::Lost(records) => panic!("{records:?} are lost"),
            RecoveryEvent::Progress { .. } => {}
        }
        Ok(())
    })?;
    Ok(((opened.journal, opened.warnings.len()), last))
}

fn record(sequence: u64) -> Vec<u8> {
    let mut record = sequence.to_le_bytes().to_vec();
    record.resize(8 + (sequence * 37 % 400) as usize, sequence as u8);
    record
}

fn number(line: &str) -> Option<u64> {
    line.strip_prefix("acknowledged ")?.parse().ok()
}

fn own_process(folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this test is a program"));
    command.args(["--exact", "kills::keeps_acknowledged_records_after_a_kill"]);
    command.arg("--nocapture").env(FOLDER_VARIABLE, folder).stdout(Stdio::piped());
    command.spawn().expect("this test can be started again")
}

/// A process that is killed on drop.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
