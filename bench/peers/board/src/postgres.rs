//! PostgreSQL through a pool of connections with prepared statements. Each connection sends the
//! statements of several requests without a wait for the results of earlier ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;
use tokio_postgres::{Client, Error, NoTls, Row, Statement};

use crate::board_data::{FORTUNES, ROWS};
use crate::board_random::random_number;
use crate::cases::{Database, Failure, Fortune, Found, WorldRow};

const TABLES: &str =
    "CREATE TABLE IF NOT EXISTS world (id integer PRIMARY KEY, randomnumber integer NOT NULL);
    CREATE TABLE IF NOT EXISTS fortune (id integer PRIMARY KEY, message text NOT NULL);";
const ONE: &str = "SELECT id, randomnumber FROM world WHERE id = $1";
const LIST: &str = "SELECT id, randomnumber FROM world WHERE id >= $1 ORDER BY id LIMIT $2";
/// The arrays are in ascending order of the ids, so that two updates lock rows in one order.
const UPDATE: &str = "UPDATE world SET randomnumber = new.random
    FROM unnest($1::int4[], $2::int4[]) AS new (id, random) WHERE world.id = new.id";

/// The pool. Requests take its connections in turn.
#[derive(Clone)]
pub(crate) struct Postgres(Arc<Pool>);

struct Pool {
    sessions: Vec<Session>,
    next: AtomicUsize,
}

/// A connection and its prepared statements.
struct Session {
    client: Client,
    one: Statement,
    list: Statement,
    fortunes: Statement,
    update: Statement,
}

impl Postgres {
    /// Opens `count` connections. The first one fills empty tables.
    pub(crate) async fn connect(place: &str, count: usize) -> Result<Self, Error> {
        let mut sessions = Vec::with_capacity(count);
        for number in 0..count.max(1) {
            let (client, connection) = tokio_postgres::connect(place, NoTls).await?;
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    eprintln!("a connection of the pool ended: {error}");
                }
            });
            if number == 0 {
                fill(&client).await?;
            }
            sessions.push(Session {
                one: client.prepare(ONE).await?,
                list: client.prepare(LIST).await?,
                fortunes: client.prepare("SELECT id, message FROM fortune").await?,
                update: client.prepare(UPDATE).await?,
                client,
            });
        }
        Ok(Self(Arc::new(Pool { sessions, next: AtomicUsize::new(0) })))
    }

    fn session(&self) -> &Session {
        let next = self.0.next.fetch_add(1, Ordering::Relaxed);
        &self.0.sessions[next % self.0.sessions.len()]
    }
}

impl Session {
    /// Reads each row by a separate query. Sends all queries before the first result arrives.
    async fn rows(&self, ids: &[i32]) -> Found<Vec<WorldRow>> {
        let rows = try_join_all(ids.iter().map(|id| self.row(id))).await?;
        rows.into_iter().map(|row| row.ok_or_else(Failure::no_such_row)).collect()
    }

    async fn row(&self, id: &i32) -> Result<Option<WorldRow>, Error> {
        Ok(self.client.query_opt(&self.one, &[id]).await?.as_ref().map(row))
    }
}

impl Database for Postgres {
    async fn rows(&self, ids: Vec<u32>) -> Found<Vec<WorldRow>> {
        let ids: Vec<i32> = ids.into_iter().map(u32::cast_signed).collect();
        self.session().rows(&ids).await
    }

    async fn list(&self, first: u32, count: u32) -> Found<Vec<WorldRow>> {
        let session = self.session();
        let (first, count) = (first.cast_signed(), i64::from(count));
        let rows = session.client.query(&session.list, &[&first, &count]).await?;
        Ok(rows.iter().map(row).collect())
    }

    async fn fortunes(&self) -> Found<Vec<Fortune>> {
        let session = self.session();
        let rows = session.client.query(&session.fortunes, &[]).await?;
        let fortune = |row: &Row| Fortune { id: unsigned(row, 0), message: row.get(1) };
        Ok(rows.iter().map(fortune).collect())
    }

    async fn update(&self, changes: Vec<(u32, u32)>) -> Found<Vec<WorldRow>> {
        let session = self.session();
        let (ids, numbers): (Vec<i32>, Vec<i32>) =
            changes.iter().map(|&(id, number)| (id.cast_signed(), number.cast_signed())).unzip();
        let mut rows = session.rows(&ids).await?;
        let count = session.client.execute(&session.update, &[&ids, &numbers]).await?;
        if count != rows.len() as u64 {
            return Err(Failure::no_such_row());
        }
        for (row, (_, number)) in rows.iter_mut().zip(changes) {
            row.random = number;
        }
        Ok(rows)
    }
}

async fn fill(client: &Client) -> Result<(), Error> {
    client.batch_execute(TABLES).await?;
    let count: i64 = client.query_one("SELECT count(*) FROM world", &[]).await?.get(0);
    if count > 0 {
        return Ok(());
    }
    let ids: Vec<i32> = (1..=ROWS).map(u32::cast_signed).collect();
    let numbers: Vec<i32> = ids.iter().map(|_| random_number().cast_signed()).collect();
    let insert = "INSERT INTO world SELECT * FROM unnest($1::int4[], $2::int4[])";
    client.execute(insert, &[&ids, &numbers]).await?;
    for (message, id) in FORTUNES.into_iter().zip(1_i32..) {
        client.execute("INSERT INTO fortune VALUES ($1, $2)", &[&id, &message]).await?;
    }
    // The planner has no statistics of new tables.
    client.batch_execute("ANALYZE world; ANALYZE fortune;").await
}

fn row(row: &Row) -> WorldRow {
    WorldRow { id: unsigned(row, 0), random: unsigned(row, 1) }
}

fn unsigned(row: &Row, column: usize) -> u32 {
    row.get::<_, i32>(column).cast_unsigned()
}
