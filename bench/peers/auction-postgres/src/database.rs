//! The database of the pages: tables of `PostgreSQL`, read and changed with the methods that Bine's
//! store has.
//!
//! Each method is one statement, and blocks its thread until the database has answered. Reads of a
//! page see all changes that are committed by then. A change locks each row that it gets by its id.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bine::prelude::*;
use bine::store::{IndexOf, RowId, Schema, Value};
use bine::{FromRequest, Needs, Rejection, RequestParts};
use postgres::error::SqlState;
use postgres::types::ToSql;

use crate::connections::{Connections, TakenConnection};
use crate::rows::Parts;
pub(crate) use crate::rows::Rows as RowIter;
use crate::sql::{self, Argument, Raw};
use crate::tables::{Bid, Category, Comment, Item, OldItem, Purchase, Region, User};

/// How often a change runs that the database has aborted because of other changes.
const ATTEMPTS: usize = 4;

/// The database.
#[derive(Clone)]
pub(crate) struct Store(Arc<Connections>);

/// Reads on one connection.
pub(crate) struct Snapshot {
    connection: RefCell<TakenConnection>,
    /// Whether a row that is read by its id is locked.
    is_locking: bool,
    /// The first error of a change, which its end reports. Other reads panic.
    failure: RefCell<Option<DatabaseError>>,
}

/// A change that is not committed yet.
pub(crate) struct Transaction {
    snapshot: Snapshot,
    is_over: bool,
}

/// The result of a change.
pub(crate) struct Change<T, E>(Result<T, E>);

#[derive(Debug)]
pub(crate) enum DatabaseError {
    Postgres(postgres::Error),
    /// All connections are in use.
    Busy,
    /// A statement of a change has failed. Its end has the reason.
    Failed,
    /// A row to change does not exist.
    Gone(&'static str),
}

/// Creates the tables and their indexes.
///
/// # Errors
///
/// The database rejects a statement.
pub(crate) fn create_tables(store: &Store) -> Result<(), Error> {
    let schemas = [
        Region::schema(),
        User::schema(),
        Category::schema(),
        Item::schema(),
        OldItem::schema(),
        Bid::schema(),
        Purchase::schema(),
        Comment::schema(),
    ];
    let mut connection = store.0.take()?;
    for schema in schemas {
        connection.run(&sql::create(&schema))?;
    }
    Ok(())
}

impl Store {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self(connections)
    }

    /// Takes a connection.
    ///
    /// # Panics
    ///
    /// Panics if no connection becomes free in time. Bine's store has no such failure, so the pages
    /// do not handle it; the server sends a 500.
    pub(crate) fn read(&self) -> Snapshot {
        let connection = self.0.take().unwrap_or_else(|error| panic!("{error}"));
        Snapshot::on(connection, false)
    }

    /// Runs a change, again if the database has aborted it because of other changes.
    pub(crate) fn change<T, E: From<DatabaseError>>(
        &self,
        mut action: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Change<T, E> {
        for _ in 1..ATTEMPTS {
            match self.attempt(&mut action) {
                Err(error) if error.is_conflict() => {}
                other => return Change(other.unwrap_or_else(|error| Err(error.into()))),
            }
        }
        self.change_once(action)
    }

    /// Runs a change once.
    pub(crate) fn change_once<T, E: From<DatabaseError>>(
        &self,
        action: impl FnOnce(&mut Transaction) -> Result<T, E>,
    ) -> Change<T, E> {
        Change(self.attempt(action).unwrap_or_else(|error| Err(error.into())))
    }

    /// Brings the statistics of the tables up to date.
    ///
    /// # Errors
    ///
    /// The database rejects the statement.
    pub(crate) fn analyze(&self) -> Result<(), Error> {
        Ok(self.0.take()?.run("VACUUM ANALYZE")?)
    }

    fn attempt<T, E>(
        &self,
        action: impl FnOnce(&mut Transaction) -> Result<T, E>,
    ) -> Result<Result<T, E>, DatabaseError> {
        let mut connection = self.0.take()?;
        connection.run("BEGIN")?;
        let mut change = Transaction { snapshot: Snapshot::on(connection, true), is_over: false };
        let result = action(&mut change);
        if let Some(failure) = change.snapshot.failure.take() {
            return Err(failure);
        }
        if result.is_ok() {
            change.snapshot.connection.get_mut().run("COMMIT")?;
            change.is_over = true;
        }
        Ok(result)
    }
}

impl FromRequest for Store {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        State::<Self>::from_request(request, name).map(|store| Self::clone(&store))
    }

    fn needs(needs: &mut Needs) {
        State::<Self>::needs(needs);
    }
}

impl<T, E> Change<T, E> {
    /// The result, which is already there.
    pub(crate) fn wait(self) -> Result<T, E> {
        self.0
    }
}

impl Snapshot {
    fn on(connection: TakenConnection, is_locking: bool) -> Self {
        Self { connection: RefCell::new(connection), is_locking, failure: RefCell::default() }
    }

    pub(crate) fn get<T: Table>(&self, id: Id<T>) -> Option<T> {
        let rest = if self.is_locking { " WHERE id = $1 FOR UPDATE" } else { " WHERE id = $1" };
        self.select(&T::schema(), rest, &[Value::Id(id.row())]).pop()
    }

    pub(crate) fn one<T: Table, K>(&self, by: IndexOf<T, K>, parts: impl Parts) -> Option<T> {
        RowIter::equal(self, by, &parts).take(1).next()
    }

    pub(crate) fn find<T: Table, K>(&self, by: IndexOf<T, K>, parts: impl Parts) -> RowIter<'_, T> {
        RowIter::equal(self, by, &parts)
    }

    pub(crate) fn range<T: Table, K>(
        &self,
        by: IndexOf<T, K>,
        range: RangeInclusive<impl Parts>,
    ) -> RowIter<'_, T> {
        RowIter::within(self, by, &range)
    }

    pub(crate) fn all<T: Table>(&self) -> RowIter<'_, T> {
        RowIter::all(self)
    }

    pub(crate) fn newest<T: Table>(&self, count: usize) -> Vec<T> {
        RowIter::all(self).rev().take(count).collect()
    }

    pub(crate) fn count<T: Table>(&self) -> usize {
        let text = format!("SELECT count(*) FROM \"{}\"", T::NAME);
        let run = || -> Result<i64, DatabaseError> {
            let mut connection = self.connection.borrow_mut();
            let (client, statement) = connection.prepare(&text)?;
            Ok(client.query_one(&statement, &[])?.get(0))
        };
        run().map_or_else(|error| self.fail(error), |count| usize::try_from(count).unwrap_or(0))
    }

    /// The rows that a statement selects. `rest` follows the name of the table.
    pub(crate) fn select<T: Table>(
        &self,
        schema: &Schema,
        rest: &str,
        arguments: &[Value<'_>],
    ) -> Vec<T> {
        let text = format!("SELECT {} FROM \"{}\"{rest}", sql::columns(schema), schema.name);
        let run = || -> Result<Vec<T>, DatabaseError> {
            let mut connection = self.connection.borrow_mut();
            let (client, statement) = connection.prepare(&text)?;
            let own: Vec<Argument<'_>> = arguments.iter().copied().map(Argument).collect();
            let own: Vec<&(dyn ToSql + Sync)> = own.iter().map(|one| one as _).collect();
            let rows = client.query(&statement, &own)?;
            let decoded = rows.iter().map(|row| decode(schema, row));
            Ok(decoded.collect::<Option<_>>().expect("the columns are those of the table"))
        };
        run().unwrap_or_else(|error| self.fail(error))
    }

    /// Returns an empty value in a change, whose end reports the error.
    fn fail<T: Default>(&self, error: DatabaseError) -> T {
        assert!(self.is_locking, "{error}");
        self.failure.borrow_mut().get_or_insert(error);
        T::default()
    }
}

fn decode<T: Table>(schema: &Schema, row: &postgres::Row) -> Option<T> {
    let id = row.get::<_, Raw<'_>>(0).id()?;
    let raw: Vec<Raw<'_>> = (1..=schema.columns.len()).map(|place| row.get(place)).collect();
    let values = raw.iter().zip(&schema.columns).map(|(raw, column)| raw.value(&column.kind));
    T::from_values(id, &values.collect::<Option<Vec<_>>>()?)
}

impl Transaction {
    pub(crate) fn insert<T: Table>(&mut self, mut row: T) -> Result<Id<T>, DatabaseError> {
        row.set_id(next_id());
        let schema = T::schema();
        let places = sql::places(1, schema.columns.len() + 1);
        let columns = sql::columns(&schema);
        self.write(&format!("INSERT INTO \"{}\" ({columns}) VALUES ({places})", T::NAME), &row)?;
        Ok(Id::of(row.id()))
    }

    pub(crate) fn replace<T: Table>(&mut self, row: &T) -> Result<(), DatabaseError> {
        let schema = T::schema();
        let places = sql::places(1, schema.columns.len() + 1);
        let columns = sql::columns(&schema);
        let text = format!("UPDATE \"{}\" SET ({columns}) = ROW({places}) WHERE id = $1", T::NAME);
        match self.write(&text, row)? {
            0 => Err(DatabaseError::Gone(T::NAME)),
            _ => Ok(()),
        }
    }

    pub(crate) fn update<T: Table>(
        &mut self,
        id: Id<T>,
        edit: impl FnOnce(&mut T),
    ) -> Result<(), DatabaseError> {
        let mut row = self.get(id).ok_or(DatabaseError::Gone(T::NAME))?;
        edit(&mut row);
        self.replace(&row)
    }

    /// Runs a statement whose arguments are the id and the values of a row; returns the number of
    /// rows that it has changed.
    fn write<T: Table>(&mut self, text: &str, row: &T) -> Result<u64, DatabaseError> {
        let mut values = vec![Value::Id(row.id())];
        row.values(&mut values);
        let arguments: Vec<Argument<'_>> = values.into_iter().map(Argument).collect();
        let arguments: Vec<&(dyn ToSql + Sync)> = arguments.iter().map(|one| one as _).collect();
        let run = |connection: &mut TakenConnection| -> Result<u64, DatabaseError> {
            let (client, statement) = connection.prepare(text)?;
            Ok(client.execute(&statement, &arguments)?)
        };
        run(self.snapshot.connection.get_mut()).map_err(|error| {
            self.snapshot.failure.get_mut().get_or_insert(error);
            DatabaseError::Failed
        })
    }
}

impl Deref for Transaction {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.is_over {
            // A connection that cannot do this is closed, which ends the transaction, too.
            let _ = self.snapshot.connection.get_mut().run("ROLLBACK");
        }
    }
}

/// An id above all earlier ones: the time and a number, as a UUID of version 7 (RFC 9562).
fn next_id() -> RowId {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RowId::from_number(since.as_millis() << 80 | 0x7 << 76 | 0b10 << 62 | u128::from(count))
}

impl DatabaseError {
    /// Whether the change may succeed if it runs again.
    fn is_conflict(&self) -> bool {
        let conflicts = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        match self {
            Self::Postgres(error) => error.code().is_some_and(|code| conflicts.contains(code)),
            Self::Busy | Self::Failed | Self::Gone(_) => false,
        }
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(error) => match error.as_db_error() {
                Some(reason) => write!(to, "PostgreSQL: {}", reason.message()),
                None => write!(to, "PostgreSQL: {error}"),
            },
            Self::Busy => to.write_str("all connections to PostgreSQL are in use"),
            Self::Failed => to.write_str("a statement of this change has failed"),
            Self::Gone(table) => write!(to, "a row of `{table}` does not exist any more"),
        }
    }
}

impl From<postgres::Error> for DatabaseError {
    fn from(error: postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<DatabaseError> for Error {
    fn from(error: DatabaseError) -> Self {
        let is_taken = matches!(&error, DatabaseError::Postgres(reason)
            if reason.code() == Some(&SqlState::UNIQUE_VIOLATION));
        let status = if is_taken { Status::CONFLICT } else { Status::SERVICE_UNAVAILABLE };
        Self::status(status, error.to_string())
    }
}
