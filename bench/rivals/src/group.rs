//! Decides how a store that syncs for each commit gets its best form: one thread commits together what many threads ask
//! for meanwhile.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};

use crate::work::{Reader, Rival, Row, Writer};

/// A store and the thread that writes to it.
pub(crate) struct Grouped {
    rival: Arc<dyn Rival>,
    /// `None` only while it is dropped.
    inbox: Option<Sender<Asked>>,
    thread: Option<JoinHandle<()>>,
}

/// Rows that are to be committed, and who waits for it.
struct Asked {
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

/// Commits until nobody can ask any more. Who has asked waits, so the group is never longer than they are many.
fn write(rival: &dyn Rival, asked: &Receiver<Asked>) {
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
            // Nobody who asked is gone before it is answered.
            let _ = answer.send(outcome.clone());
        }
    }
}

impl Rival for Grouped {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        let inbox = self.inbox.clone().ok_or_else(|| anyhow!("it is being dropped"))?;
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
            // What it met was told to those who asked.
            let _ = thread.join();
        }
    }
}

struct Own {
    inbox: Sender<Asked>,
    answer: SyncSender<Result<(), String>>,
    answered: Receiver<Result<(), String>>,
}

impl Writer for Own {
    fn commit(&mut self, rows: Vec<Row>) -> Result<()> {
        self.inbox.send(Asked { rows, answer: self.answer.clone() })?;
        self.answered.recv()?.map_err(|error| anyhow!(error))
    }
}
