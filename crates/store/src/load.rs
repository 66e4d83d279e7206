//! Decides how tables come back from what the journal has: rows first, then all that can be told from them.

use crate::id::RowId;
use crate::image::Kept;
use crate::journal::{Journal, Loaded};
use crate::key::Key;
use crate::record::{self, Record};
use crate::schema::Stored;
use crate::state::{Contents, Definition, Definitions, Entries, Rows, State};
use crate::store::{Joined, Options, Progress};
use crate::value::Value;

/// What has been read until now.
#[derive(Default)]
pub(crate) struct Loading {
    stored: Vec<Stored>,
    /// By the places of the tables in the store.
    rows: Vec<Rows>,
    /// Bytes of records behind the last image.
    grown: u64,
    /// The first records that are not there, if a repair has lost some.
    lost: Vec<String>,
}

/// What a store begins with.
pub(crate) struct Begun {
    pub(crate) definitions: Definitions,
    pub(crate) kept: Kept,
    pub(crate) state: State,
    /// No id is above this one.
    pub(crate) last: RowId,
    pub(crate) lost: Vec<String>,
}

impl Loading {
    /// Takes in the next part.
    pub(crate) fn receive(
        &mut self,
        loaded: Loaded<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<(), String> {
        match loaded {
            Loaded::Block(block) => self.read(block).map_err(|why| format!("the image: {why}")),
            Loaded::Record(sequence, record) => {
                self.grown += record.len() as u64;
                self.read(record).map_err(|why| format!("record {sequence}: {why}"))
            }
            Loaded::Lost(records) => {
                let (first, last) = records.into_inner();
                self.lost.push(format!("records {first} to {last} were lost before"));
                Ok(())
            }
            Loaded::Progress { done, all } => {
                progress(done, all);
                Ok(())
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), String> {
        match record::read(bytes).ok_or("it cannot be read, though it is as it was written")? {
            Record::Tables(tables) => {
                if tables.len() < self.rows.len() {
                    return Err("it has fewer tables than there were".to_owned());
                }
                self.rows.resize_with(tables.len(), Rows::default);
                self.stored = tables;
            }
            Record::Rows(writes) => {
                for write in writes {
                    let rows = self.rows.get_mut(write.table);
                    let rows = rows.ok_or("it names a table that was never made")?;
                    match write.row {
                        Some(row) => rows.insert(write.id, row),
                        None => rows.remove(write.id),
                    }
                }
            }
        }
        Ok(())
    }

    /// Joins what was read to what the program says, and writes down what tables consist of from now on.
    pub(crate) fn finish(
        self,
        options: Options,
        sequence: u64,
        journal: &mut dyn Journal,
    ) -> Result<Begun, String> {
        let Self { stored: before, mut rows, grown, lost } = self;
        let Joined { definitions, places, stored } = options.join(&before)?;
        rows.resize_with(stored.len(), Rows::default);
        let last = rows.iter().filter_map(|rows| rows.iter().next_back()).map(|(id, _)| id).max();
        let mut state = State { sequence, epoch: 0, tables: Vec::new() };
        for (definition, place) in definitions.iter().zip(&places) {
            state.tables.push(with_indexes(definition, std::mem::take(&mut rows[*place]))?);
        }
        let others = rows.into_iter().enumerate().filter(|(place, _)| !places.contains(place));
        let others = others.collect();
        if stored != before {
            let written =
                journal.append(&record::tables(&stored)).and_then(|_| journal.write(true));
            state.sequence = written.map_err(|error| error.to_string())?;
        }
        let kept = Kept::new(stored, places, others, grown);
        Ok(Begun { definitions, kept, state, last: last.unwrap_or_default(), lost })
    }
}

/// Every row is read once, and found by its keys from then on.
fn with_indexes(definition: &Definition, rows: Rows) -> Result<Contents, String> {
    let name = &definition.schema.name;
    let all = &definition.schema.indexes;
    let mut found: Vec<[Vec<(Key, RowId)>; 2]> = vec![Default::default(); all.len()];
    for (id, row) in rows.iter() {
        let values = definition.values(row);
        let values = values.ok_or_else(|| format!("the row {id} of `{name}` cannot be read"))?;
        for (index, [entries, partial]) in found.iter_mut().enumerate() {
            let is_partial = all[index].columns.iter().any(|column| values[*column] == Value::Null);
            let to = if is_partial { partial } else { entries };
            to.push((definition.key(index, &values), id));
        }
    }
    let mut indexes = Vec::new();
    for (own, [mut entries, mut partial]) in all.iter().zip(found) {
        entries.sort_unstable();
        // Nothing is not the same as nothing.
        if own.is_unique
            && let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0)
        {
            let columns =
                own.columns.iter().map(|column| &*definition.schema.columns[*column].name);
            return Err(format!(
                "`{name}` shall have no two rows with the same `{}`, and {} and {} have: change one of them before, \
                 or take `unique` away",
                columns.collect::<Vec<_>>().join("`, `"),
                pair[0].1,
                pair[1].1
            ));
        }
        entries.append(&mut partial);
        entries.sort_unstable();
        let mut index = Entries::default();
        entries.iter().for_each(|(key, id)| index.insert(key, *id));
        indexes.push(index);
    }
    Ok(Contents { rows, indexes })
}
