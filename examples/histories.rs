//! The program that `cargo xtask histories` verifies: registers and lists, which transactions read and
//! write, and channels.
//!
//! A register is one row. A list is a group of rows, so that transactions read ranges and insert. Each
//! has a version, the number of its changes, and a writer, the operation that wrote it last. The
//! operation names both kinds by their keys, and a list has a key that begins with `list`.

use bine::channels::{Access, ClientLimits};
use bine::prelude::*;
use bine::store::Snapshot;
use serde::{Deserialize, Serialize};

/// A row that each change replaces.
#[derive(Table)]
struct Register {
    id: Id<Register>,
    #[table(unique)]
    key: Text,
    #[table(index)]
    history: Text,
    version: u32,
    writer: Text,
}

/// A row that is never changed. The rows of a list have the numbers from 1 on.
#[derive(Table)]
#[table(index(list, number))]
struct Entry {
    id: Id<Entry>,
    list: Text,
    #[table(index)]
    history: Text,
    number: u32,
    writer: Text,
}

/// The state of a register or of a list.
#[derive(Serialize)]
struct Seen {
    key: String,
    version: u32,
    writer: String,
}

/// One key of a transaction.
#[derive(Deserialize)]
struct Touched {
    key: String,
    writes: bool,
}

/// What a request finds, and the sequence of the state that it has read.
#[derive(Serialize)]
struct Found {
    sequence: u64,
    seen: Vec<Seen>,
}

fn look_up(rows: &Snapshot, key: String) -> Seen {
    let (version, writer) = if key.starts_with("list") {
        let entries: Vec<Entry> = rows.find(Entry::BY_LIST_NUMBER, (&*key,)).collect();
        let writer = entries.last().map(|entry| entry.writer.to_string());
        (entries.len() as u32, writer)
    } else {
        let row = rows.one(Register::BY_KEY, &*key);
        row.map_or((0, None), |row| (row.version, Some(row.writer.to_string())))
    };
    Seen { key, version, writer: writer.unwrap_or_default() }
}

/// Reads each key, and then writes some of them. Returns what it has read.
#[service]
fn transact(
    call: &mut Call,
    history: Text,
    writer: Text,
    keys: Vec<Touched>,
) -> Result<Vec<Seen>, Error> {
    let mut all = Vec::with_capacity(keys.len());
    for Touched { key, writes } in keys {
        let seen = look_up(call, key);
        if writes {
            write(call, &seen, &history, &writer)?;
        }
        all.push(seen);
    }
    Ok(all)
}

fn write(call: &mut Call, seen: &Seen, history: &Text, writer: &Text) -> Result<(), Error> {
    let (history, writer, key) = (history.clone(), writer.clone(), Text::from(&*seen.key));
    if seen.key.starts_with("list") {
        let number = seen.version + 1;
        call.insert(Entry { id: Id::unassigned(), list: key, history, number, writer })?;
        return Ok(());
    }
    match call.one(Register::BY_KEY, &*seen.key) {
        Some(found) => call.update(found.id, |row: &mut Register| {
            row.version += 1;
            row.writer = writer;
        })?,
        None => {
            call.insert(Register { id: Id::unassigned(), key, history, version: 1, writer })?;
        }
    }
    Ok(())
}

/// Reads keys, which are separated by commas, in one snapshot.
#[page("/read")]
async fn read(store: Store, keys: Query<Text>) -> Json<Found> {
    let rows = store.read();
    let seen = keys.split(',').map(|key| look_up(&rows, key.to_owned())).collect();
    Json(Found { sequence: rows.sequence(), seen })
}

/// Reads all rows of a history: the registers, and each entry of the lists with its number.
#[page("/rows")]
async fn rows(store: Store, history: Query<Text>) -> Json<Found> {
    let rows = store.read();
    let registers = rows.find(Register::BY_HISTORY, &**history).map(|row| Seen {
        key: row.key.to_string(),
        version: row.version,
        writer: row.writer.to_string(),
    });
    let mut seen: Vec<Seen> = registers.collect();
    seen.extend(rows.find(Entry::BY_HISTORY, &**history).map(|row| Seen {
        key: row.list.to_string(),
        version: row.number,
        writer: row.writer.to_string(),
    }));
    Json(Found { sequence: rows.sequence(), seen })
}

fn main() -> Exit {
    // All clients of a verification have one address.
    let limits = ClientLimits { messages_per_address: 1_000_000, ..ClientLimits::default() };
    App::new()
        .table::<Register>()
        .table::<Entry>()
        .service(transact)
        .page(read)
        .page(rows)
        .channels(Access::allow_all().client_limits(limits))
        .run()
}
