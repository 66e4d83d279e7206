//! Tests that a killed process loses no acknowledged change and writes no partial one, on a real
//! disk.
//!
//! The environment variable `BINE_KILLS` sets the number of killed processes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use bine_store::{Error, Id, Store, Sync, Transaction};

use crate::model::Model;
use crate::random::Random;
use crate::scratch::Scratch;
use crate::tables::{self, Message, User};

const KILLS: u64 = 50;
/// The environment variable that marks a process to be killed; it holds the folder.
const FOLDER_VARIABLE: &str = "BINE_KILLS_FOLDER";
const WRITERS: u8 = 4;
/// The number of messages that each writer keeps.
const KEPT: i64 = 5;
/// The most files of a folder after a checkpoint, which is due after four segments.
const MAX_FILES: usize = 20;
/// The most changes until a checkpoint has ended.
const MAX_CHANGES: i64 = 20_000;

#[test]
fn keeps_acknowledged_changes_after_a_kill() {
    if let Ok(folder) = std::env::var(FOLDER_VARIABLE) {
        return write_until_killed(&open(Path::new(&folder)));
    }
    let kills = std::env::var("BINE_KILLS").ok().and_then(|text| text.parse().ok());
    let kills = kills.unwrap_or(KILLS);
    let scratch = Scratch::new("kills-of-tables");
    let mut random = Random(1);
    let mut last = BTreeMap::new();
    for _ in 0..kills {
        let mut child = Killed::start(&scratch.0);
        // Kill after a random number of acknowledgments.
        for _ in 0..=random.below(100) {
            child.next().expect("it writes until it is killed");
        }
        child.kill();
        // Includes acknowledgments that it printed before it died.
        for (writer, number) in std::mem::take(&mut child.acknowledged) {
            let before = last.insert(writer, number);
            assert!(before < Some(number), "numbers go on where they were");
        }
        let store = open(&scratch.0);
        let found = check(&store);
        for (writer, acknowledged) in &last {
            let found = found.get(writer).copied().unwrap_or_default();
            assert!(found >= *acknowledged, "{found} of {acknowledged} changes of writer {writer}");
        }
        last = found;
    }
    remove_obsolete_files(&scratch.0);
    println!("{} changes of {WRITERS} writers", last.values().sum::<i64>());
    assert_eq!(last.len(), usize::from(WRITERS), "all have written");
}

/// Opens the store with small segments, so that kills also hit new segments and checkpoints.
fn open(folder: &Path) -> Store {
    let options = tables::options().segment(8 << 10).sync(Sync::Commit);
    Store::open(folder, options, &mut |_, _| {}).expect("a kill damages nothing")
}

/// Writes until a checkpoint has removed the files of the killed processes, few of which lived as long
/// as a checkpoint takes.
fn remove_obsolete_files(folder: &Path) {
    let store = open(folder);
    let next = check(&store).get(&0).copied().unwrap_or_default() + 1;
    for number in next..next + MAX_CHANGES {
        store.change(|change| make(change, 0, number)).wait().unwrap();
        let files = std::fs::read_dir(folder).expect("it was just read").count();
        if files <= MAX_FILES {
            return;
        }
    }
    panic!("obsolete files stay: {:?}", store.checkpoint_failure());
}

/// Runs writers, which print each acknowledged change.
fn write_until_killed(store: &Store) {
    let found = check(store);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let next = found.get(&writer).copied().unwrap_or_default() + 1;
            scope.spawn(move || {
                for number in next.. {
                    store.change(|change| make(change, writer, number)).wait().unwrap();
                    // The test harness has already printed on this line.
                    let acknowledged = format!("\nacknowledged {writer} {number}\n");
                    let mut out = std::io::stdout().lock();
                    if out.write_all(acknowledged.as_bytes()).and_then(|()| out.flush()).is_err() {
                        return;
                    }
                }
            });
        }
    });
}

/// One change of a writer: inserts a message that refers to the previous one, removes the oldest
/// message, and updates the writer's count.
fn make(change: &mut Transaction, writer: u8, number: i64) -> Result<(), Error> {
    let name = format!("writer {writer}");
    let author = match change.one(User::BY_NAME, &name) {
        Some(user) => user.id,
        None => change.insert(User::new(&name, None))?,
    };
    change.update(author, |user: &mut User| user.age = Some(remainder(number)))?;
    let subject = Some(writer);
    let of = |number: i64| (subject, number);
    let parent = change.one(Message::BY_SUBJECT_SCORE, of(number - 1)).map(|message| message.id);
    change.insert(Message { id: Id::unassigned(), author, parent, subject, score: number })?;
    if let Some(oldest) = change.one(Message::BY_SUBJECT_SCORE, of(number - KEPT)) {
        let second = change.one(Message::BY_SUBJECT_SCORE, of(number - KEPT + 1));
        let second = second.expect("they go one by one").id;
        change.update(second, |message: &mut Message| message.parent = None)?;
        change.remove(oldest.id)?;
    }
    Ok(())
}

/// A count reduced to the range of an age.
fn remainder(number: i64) -> u8 {
    number.rem_euclid(251).try_into().expect("it is less than a byte holds")
}

/// Checks that the tables contain whole changes only, and returns the last change of each writer.
fn check(store: &Store) -> BTreeMap<u8, i64> {
    let now = store.read();
    let model = Model::of(&now);
    let mut last = BTreeMap::new();
    let mut messages = 0;
    for writer in 0..WRITERS {
        let Some(user) = now.one(User::BY_NAME, &*format!("writer {writer}")) else { continue };
        let own: Vec<Message> = now.find(Message::BY_SUBJECT_SCORE, (Some(writer),)).collect();
        let number = own.last().expect("the first change makes both").score;
        let numbers: Vec<i64> = own.iter().map(|message| message.score).collect();
        let expected: Vec<i64> = ((number - KEPT + 1).max(1)..=number).collect();
        assert_eq!(numbers, expected, "of writer {writer}");
        assert_eq!(user.age, Some(remainder(number)));
        for pair in own.windows(2) {
            assert_eq!(pair[1].parent, Some(pair[0].id));
            assert!(pair[0].id < pair[1].id, "in the order in which they were made");
        }
        assert!(own[0].parent.is_none() && own.iter().all(|message| message.author == user.id));
        messages += own.len();
        last.insert(writer, number);
    }
    // No other rows exist.
    assert_eq!((model.users.len(), model.messages.len()), (last.len(), messages));
    last
}

/// A process that is killed on drop.
struct Killed {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// The last number of each writer.
    acknowledged: BTreeMap<u8, i64>,
}

impl Killed {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this test is a program"));
        command
            .args(["--exact", "kills::keeps_acknowledged_changes_after_a_kill"])
            .arg("--nocapture")
            .env(FOLDER_VARIABLE, folder)
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("this test can be started again");
        let lines = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, lines, acknowledged: BTreeMap::new() }
    }

    /// Waits for the next acknowledgment; `None` if the process has ended.
    fn next(&mut self) -> Option<()> {
        loop {
            let mut line = String::new();
            // A kill may cut a line short; a partial line acknowledges no change.
            if self.lines.read_line(&mut line).ok()? == 0 || !line.ends_with('\n') {
                return None;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let ["acknowledged", writer, number] = words[..] else { continue };
            let (writer, number) = (writer.parse().ok()?, number.parse().ok()?);
            self.acknowledged.insert(writer, number);
            return Some(());
        }
    }

    fn kill(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        while self.next().is_some() {}
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
