//! A pool of connections, which threads take in turn.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::str::FromStr as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use postgres::{Client, Config, NoTls, Statement};

use crate::database::DatabaseError;

/// A thread without a connection gives up after this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pool. It opens a connection when a thread needs one and all open connections are in use.
pub(crate) struct Connections {
    config: Config,
    state: Mutex<State>,
    /// A connection is free, or may be opened.
    is_free: Condvar,
}

struct State {
    free: Vec<Connection>,
    /// Connections that are neither open nor in the process of being opened.
    closed: usize,
}

/// An open connection and its prepared statements, by their text.
pub(crate) struct Connection {
    client: Client,
    statements: HashMap<String, Statement>,
}

/// A connection in use, which returns to the pool when it is dropped.
pub(crate) struct TakenConnection {
    pool: Arc<Connections>,
    /// `Some` until it is dropped.
    connection: Option<Connection>,
}

impl Connections {
    /// `most` is the number of connections.
    ///
    /// # Errors
    ///
    /// `place` is not a description of a database, or `most` is zero.
    pub(crate) fn new(place: &str, most: usize) -> Result<Arc<Self>, String> {
        if most == 0 {
            return Err("AUCTION_CONNECTIONS must be a whole number from 1 on".to_owned());
        }
        let config =
            Config::from_str(place).map_err(|error| format!("AUCTION_POSTGRES: {error}"))?;
        let state = Mutex::new(State { free: Vec::new(), closed: most });
        Ok(Arc::new(Self { config, state, is_free: Condvar::new() }))
    }

    /// Waits for a connection.
    ///
    /// # Errors
    ///
    /// All connections are in use for too long, or the database does not accept one.
    pub(crate) fn take(self: &Arc<Self>) -> Result<TakenConnection, DatabaseError> {
        let busy = |state: &mut State| state.free.is_empty() && state.closed == 0;
        let waited = self.is_free.wait_timeout_while(self.state(), PATIENCE, busy);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        // The last one is the one whose statements the database used last.
        if let Some(connection) = state.free.pop() {
            return Ok(TakenConnection { pool: Arc::clone(self), connection: Some(connection) });
        }
        state.closed = state.closed.checked_sub(1).ok_or(DatabaseError::Busy)?;
        drop(state);
        match self.config.connect(NoTls) {
            Ok(client) => {
                let connection = Some(Connection { client, statements: HashMap::new() });
                Ok(TakenConnection { pool: Arc::clone(self), connection })
            }
            Err(error) => {
                self.give_back(None);
                Err(error.into())
            }
        }
    }

    /// Takes back a connection; `None` is one that is closed.
    fn give_back(&self, connection: Option<Connection>) {
        let mut state = self.state();
        match connection {
            Some(connection) => state.free.push(connection),
            None => state.closed += 1,
        }
        drop(state);
        self.is_free.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is complete, even if a thread panicked later.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// The statement of a text, prepared at its first use.
    pub(crate) fn prepare(
        &mut self,
        text: &str,
    ) -> Result<(&mut Client, Statement), DatabaseError> {
        if let Some(known) = self.statements.get(text) {
            return Ok((&mut self.client, known.clone()));
        }
        let statement = self.client.prepare(text)?;
        self.statements.insert(text.to_owned(), statement.clone());
        Ok((&mut self.client, statement))
    }

    /// Runs statements without arguments and results.
    pub(crate) fn run(&mut self, text: &str) -> Result<(), DatabaseError> {
        Ok(self.client.batch_execute(text)?)
    }
}

impl Deref for TakenConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for TakenConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for TakenConnection {
    fn drop(&mut self) {
        let open = self.connection.take().filter(|connection| !connection.client.is_closed());
        self.pool.give_back(open);
    }
}
