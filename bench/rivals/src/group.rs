//! Group commit for stores that sync at each commit: one thread commits the rows of all waiting
//! threads together, which is their best form.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};

use crate::work::{Reader, Rival, Row, Writer};

/// A store and the thread that writes to it.
pub(crate) struct Grouped {
    rival: Arc<dyn Rival>,
    /// `None` only during the drop.
    inbox: Option<Sender<CommitRequest>>,
    thread: Option<JoinHandle<()>>,
}

/// Rows to commit, and the channel of the waiting thread.
struct CommitRequest {
    rows: Vec<Row>,
    answer: SyncSender<Result<(), String>>,
}

impl Grouped {
    pub(crate) fn new(rival: Box<dyn Rival>) -> Self {
        let rival: Arc<dyn Rival> = rival.into();
        let (inbox, asked) = mpsc::channel();
        let own = Arc::clone(&rival);
        let thread = thread::spawn(move || write(&*own, &asked));
        Self { rival, inbox: Some(inbox), thread: Some(thread) }
    }
}

/// Commits until all senders are dropped. A sender waits for its response, so a group is never
/// larger than the number of threads.
fn write(rival: &dyn Rival, asked: &Receiver<CommitRequest>) {
    let mut writer = rival.writer();
    while let Ok(first) = asked.recv() {
        let mut rows = Vec::new();
        let mut answers = Vec::new();
        for mut each in std::iter::once(first).chain(asked.try_iter()) {
            rows.append(&mut each.rows);
            answers.push(each.answer);
        }
        let outcome = match &mut writer {
            Ok(writer) => writer.commit(rows).map_err(|error| format!("{error:#}")),
            Err(error) => Err(format!("{error:#}")),
        };
        for answer in answers {
            // Every sender waits for its response, so this cannot fail.
            let _ = answer.send(outcome.clone());
        }
    }
}

impl Rival for Grouped {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        let inbox = self.inbox.clone().ok_or_else(|| anyhow!("the store is being dropped"))?;
        let (answer, answered) = mpsc::sync_channel(1);
        Ok(Box::new(Own { inbox, answer, answered }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        self.rival.reader()
    }

    fn sync(&self) -> Result<()> {
        self.rival.sync()
    }

    fn count(&self) -> Result<u64> {
        self.rival.count()
    }
}

impl Drop for Grouped {
    fn drop(&mut self) {
        self.inbox = None;
        if let Some(thread) = self.thread.take() {
            // The senders have received its errors.
            let _ = thread.join();
        }
    }
}

struct Own {
    inbox: Sender<CommitRequest>,
    answer: SyncSender<Result<(), String>>,
    answered: Receiver<Result<(), String>>,
}

impl Writer for Own {
    fn commit(&mut self, rows: Vec<Row>) -> Result<()> {
        self.inbox.send(CommitRequest { rows, answer: self.answer.clone() })?;
        self.answered.recv()?.map_err(|error| anyhow!(error))
    }
}
