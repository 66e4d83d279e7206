//! `SQLite` with a write-ahead log that is synced at each commit. One thread reads and one thread
//! writes, on separate connections, so that no read waits for the disk.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use rusqlite::{Connection, Row, TransactionBehavior, params};
use tokio::sync::oneshot;

use crate::board_data::{FORTUNES, ROWS};
use crate::board_random::random_number;
use crate::cases::{Database, Failure, Fortune, Found, WorldRow};

const TABLES: &str =
    "CREATE TABLE IF NOT EXISTS world (id INTEGER PRIMARY KEY, randomnumber INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS fortune (id INTEGER PRIMARY KEY, message TEXT NOT NULL);";
const ONE: &str = "SELECT id, randomnumber FROM world WHERE id = ?1";
const LIST: &str = "SELECT id, randomnumber FROM world WHERE id >= ?1 ORDER BY id LIMIT ?2";
const UPDATE: &str = "UPDATE world SET randomnumber = ?2 WHERE id = ?1";
/// The time that a connection waits for a lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// The senders of the two threads.
#[derive(Clone)]
pub(crate) struct Sqlite {
    reads: Sender<Read>,
    updates: Sender<Update>,
}

type Read = Box<dyn FnOnce(&Connection) + Send>;

struct Update {
    changes: Vec<(u32, u32)>,
    reply: oneshot::Sender<Found<Vec<WorldRow>>>,
}

impl Sqlite {
    /// Opens the file, fills empty tables, and starts the threads. `most`: updates of a transaction.
    pub(crate) fn open(file: &Path, most: usize) -> rusqlite::Result<Self> {
        let (mut writer, reader) = (connect(file)?, connect(file)?);
        fill(&mut writer)?;
        let (reads, read_jobs) = mpsc::channel::<Read>();
        let (updates, update_jobs) = mpsc::channel();
        std::thread::spawn(move || {
            while let Ok(read) = read_jobs.recv() {
                read(&reader);
            }
        });
        std::thread::spawn(move || write(&mut writer, &update_jobs, most));
        Ok(Self { reads, updates })
    }

    /// Runs `work` in the thread that reads.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Found<T> {
        let (sender, receiver) = oneshot::channel();
        // A client that has disconnected takes no result.
        let read = move |connection: &Connection| drop(sender.send(work(connection)));
        self.reads.send(Box::new(read))?;
        Ok(receiver.await??)
    }
}

impl Database for Sqlite {
    async fn rows(&self, ids: Vec<u32>) -> Found<Vec<WorldRow>> {
        self.read(move |connection| {
            let mut one = connection.prepare_cached(ONE)?;
            ids.iter().map(|id| one.query_row([id], row)).collect()
        })
        .await
    }

    async fn list(&self, first: u32, count: u32) -> Found<Vec<WorldRow>> {
        self.read(move |connection| {
            let mut list = connection.prepare_cached(LIST)?;
            list.query_map([first, count], row)?.collect()
        })
        .await
    }

    async fn fortunes(&self) -> Found<Vec<Fortune>> {
        self.read(|connection| {
            let mut all = connection.prepare_cached("SELECT id, message FROM fortune")?;
            let fortune = |row: &Row<'_>| Ok(Fortune { id: row.get(0)?, message: row.get(1)? });
            all.query_map([], fortune)?.collect()
        })
        .await
    }

    async fn update(&self, changes: Vec<(u32, u32)>) -> Found<Vec<WorldRow>> {
        let (reply, receiver) = oneshot::channel();
        self.updates.send(Update { changes, reply })?;
        receiver.await?
    }
}

fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

fn fill(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    let count: u32 = connection.query_row("SELECT count(*) FROM world", [], |row| row.get(0))?;
    if count > 0 {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    for id in 1..=ROWS {
        transaction.execute("INSERT INTO world VALUES (?1, ?2)", params![id, random_number()])?;
    }
    for (message, id) in FORTUNES.into_iter().zip(1_u32..) {
        transaction.execute("INSERT INTO fortune VALUES (?1, ?2)", params![id, message])?;
    }
    transaction.commit()
}

fn row(row: &Row<'_>) -> rusqlite::Result<WorldRow> {
    Ok(WorldRow { id: row.get(0)?, random: row.get(1)? })
}

/// Commits the updates that wait, at most `most` in one transaction, until the server ends.
fn write(connection: &mut Connection, jobs: &Receiver<Update>, most: usize) {
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(most.saturating_sub(1)));
        let outcome = commit(connection, &group);
        match outcome {
            Ok(rows) => {
                for (update, rows) in group.into_iter().zip(rows) {
                    // A client that has disconnected takes no result.
                    drop(update.reply.send(rows));
                }
            }
            Err(error) => {
                let text = error.to_string();
                for update in group {
                    drop(update.reply.send(Err(Failure::of(&text))));
                }
            }
        }
    }
}

/// The rows of each update, after all are durable.
fn commit(
    connection: &mut Connection,
    group: &[Update],
) -> rusqlite::Result<Vec<Found<Vec<WorldRow>>>> {
    // A deferred transaction could fail because of a write after its first read.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let outcomes = {
        let mut one = transaction.prepare_cached(ONE)?;
        let mut update = transaction.prepare_cached(UPDATE)?;
        let mut outcomes = Vec::with_capacity(group.len());
        for Update { changes, .. } in group {
            // All reads of an update precede its writes, so an update with a missing row writes no
            // rows.
            let read: rusqlite::Result<Vec<WorldRow>> =
                changes.iter().map(|(id, _)| one.query_row([id], row)).collect();
            let outcome = match read {
                Ok(mut rows) => {
                    for (row, &(id, random)) in rows.iter_mut().zip(changes) {
                        update.execute([id, random])?;
                        row.random = random;
                    }
                    Ok(rows)
                }
                Err(rusqlite::Error::QueryReturnedNoRows) => Err(Failure::no_such_row()),
                Err(error) => return Err(error),
            };
            outcomes.push(outcome);
        }
        outcomes
    };
    transaction.commit()?;
    Ok(outcomes)
}
