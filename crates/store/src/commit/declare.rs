//! Declaring tables while the store is open.
//!
//! A declaration is a commit that replaces the catalog of the head. States, snapshots and
//! transactions hold the catalog that they began with. A transaction that writes to a table whose
//! definition was replaced meanwhile conflicts, so that its caller runs it again.

use std::fmt;
use std::sync::{Arc, MutexGuard};

use super::{Committer, Completion, Head, Pending, Staged};
use crate::checkpoint::MAX_ROW_LENGTH;
use crate::declaration::{Declaration, MergedTables};
use crate::error::Error;
use crate::index_builder::with_indexes;
use crate::reads::Changes;
use crate::record;
use crate::schema::{Schema, UnknownColumns};
use crate::state::{Catalog, Definition, Definitions, Rows, State, TableState, UndeclaredRows};

/// The reason why tables could not be declared. A failed declaration has no effect.
#[derive(Clone, PartialEq, Debug)]
pub enum DeclareError {
    /// The tables contradict each other or the stored ones, or an index cannot be unique. The
    /// message names the fix.
    Rejected(String),
    /// The store rejects commits.
    Failed(Error),
}

/// A new catalog, with the tables that differ from those of the state that it is based on.
pub(super) struct Redefinition {
    definitions: Definitions,
    undeclared: UndeclaredRows,
    /// New tables and tables whose rows read differently, with their positions.
    tables: Vec<(usize, TableState)>,
    /// The tables whose definitions differ, those with other referrers included.
    pub(super) redefined: Vec<usize>,
    pub(super) record: Vec<u8>,
}

/// How often indexes are built during concurrent commits. When such a commit has changed a table
/// each time, they are built while commits wait.
const ATTEMPTS: usize = 3;
/// The longest record of table definitions, which a snapshot stores in one block. A load has the
/// same limit.
const MAX_TABLES_LENGTH: usize = MAX_ROW_LENGTH;

impl Committer {
    /// Stages tables after all commits so far.
    pub(crate) fn declare(self: &Arc<Self>, tables: &[Schema]) -> Result<Pending, DeclareError> {
        if let Some(shared) = &self.shared {
            return self.declare_shared(shared, Declaration::Schemas(tables.to_vec()));
        }
        for _ in 0..ATTEMPTS {
            let base = self.head_state();
            let redefinition = Redefinition::of(&base, redeclared(&base, tables)?)?;
            let head = self.open_head()?;
            if redefinition.fits(&head, &base) {
                return Ok(self.stage_redefinition(head, redefinition));
            }
        }
        let head = self.open_head()?;
        let redefinition = Redefinition::of(&head.state, redeclared(&head.state, tables)?)?;
        Ok(self.stage_redefinition(head, redefinition))
    }

    fn stage_redefinition(
        self: &Arc<Self>,
        mut head: MutexGuard<'_, Head>,
        mut redefinition: Redefinition,
    ) -> Pending {
        let completion = Arc::new(Completion::default());
        let pending = Pending { committer: Arc::clone(self), completion: Arc::clone(&completion) };
        // Without changes no write is necessary, but an equal declaration may still be staged.
        let (mut sequence, mut changes) = (head.state.sequence, None);
        let Redefinition { redefined, record, .. } = &mut redefinition;
        let (redefined, record) = (std::mem::take(redefined), std::mem::take(record));
        if !redefined.is_empty() {
            let (state, rewritten) = redefinition.applied_to(&head.state);
            sequence = head.advance(record.len(), Some(Arc::new(state))).sequence;
            let made = Arc::new(Changes::redefinition(sequence, redefined, &rewritten));
            head.remember(&made);
            changes = Some(made);
        } else if sequence <= self.visible.load().sequence {
            drop(head);
            completion.settle(Ok(sequence));
            return pending;
        }
        head.staged.push(Staged {
            record: if changes.is_some() { record } else { Vec::new() },
            sequence,
            state: None,
            sync: self.sync,
            changes,
            on_durable: None,
            completion,
            after_commit: Vec::new(),
        });
        pending
    }
}

impl Redefinition {
    pub(super) fn of(base: &State, merged: MergedTables) -> Result<Self, DeclareError> {
        let old = &base.definitions;
        let MergedTables { definitions, positions, stored } = merged;
        // A record without writes suffices where the stored columns are the same: the next start
        // declares indexes and limits itself.
        let record =
            if stored == old.stored { record::rows(&[], &[]) } else { record::tables(&stored) };
        if record.len() > MAX_TABLES_LENGTH {
            return Err(DeclareError::Failed(Error::TooLarge));
        }
        let (mut built, mut redefined) = (Vec::new(), Vec::new());
        for (table, definition) in definitions.iter().enumerate() {
            let before = old.get(table);
            if before.is_some_and(|before| is_equal(before, definition)) {
                continue;
            }
            redefined.push(table);
            if before.is_some_and(|before| reads_equally(before, definition)) {
                continue;
            }
            let rows = match base.tables.get(table) {
                Some(state) => state.rows.clone(),
                None => undeclared_rows(base, positions[table]),
            };
            let state = with_indexes(definition, rows).map_err(DeclareError::Rejected)?;
            built.push((table, state));
        }
        let definitions = Arc::new(Catalog::new(definitions, stored, positions));
        let undeclared = definitions.undeclared(base.undeclared.iter().cloned());
        Ok(Self { definitions, undeclared, tables: built, redefined, record })
    }

    /// A state with the new catalog, and the earlier tables whose rows read differently.
    pub(super) fn applied_to(self, state: &State) -> (State, Vec<usize>) {
        let mut state = State::clone(state);
        let old = state.definitions.len();
        (state.definitions, state.undeclared) = (self.definitions, self.undeclared);
        let mut rewritten = Vec::new();
        for (position, table) in self.tables {
            if position < old {
                rewritten.push(position);
                state.tables[position] = table;
            } else {
                // New tables are in the order of their positions.
                state.tables.push(table);
            }
        }
        (state, rewritten)
    }

    /// Whether the head has the same catalog and the same rows of the redefined tables as `base`.
    pub(super) fn fits(&self, head: &Head, base: &State) -> bool {
        let has_changed = |changes: &Changes| {
            let is_changed =
                |table: &usize| changes.rows(*table).is_none_or(|rows| !rows.is_empty());
            self.tables.iter().any(|(table, _)| is_changed(table))
        };
        Arc::ptr_eq(&head.state.definitions, &base.definitions)
            && Arc::ptr_eq(&head.state.undeclared, &base.undeclared)
            && head.is_ancestor(base)
            && head.has_no_conflict(base, has_changed)
    }
}

/// The program's tables with these declared, or declared again.
fn redeclared(base: &State, tables: &[Schema]) -> Result<MergedTables, DeclareError> {
    let merged = MergedTables::redeclare(&base.definitions, tables, UnknownColumns::Reject);
    merged.map_err(DeclareError::Rejected)
}

/// Whether a table has the same definition.
fn is_equal(before: &Definition, after: &Definition) -> bool {
    before.schema == after.schema
        && before.layout == after.layout
        && before.references == after.references
        && before.referrers == after.referrers
}

/// Whether rows, indexes and the texts about them are the same, whatever refers to the table.
fn reads_equally(before: &Definition, after: &Definition) -> bool {
    before.schema == after.schema && before.layout == after.layout
}

/// The rows of a table that the program did not declare so far.
fn undeclared_rows(state: &State, position: usize) -> Rows {
    let found = state.undeclared.iter().find(|(own, _)| *own == position);
    found.map(|(_, rows)| rows.clone()).unwrap_or_default()
}

impl From<Error> for DeclareError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl fmt::Display for DeclareError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(why) => to.write_str(why),
            Self::Failed(error) => error.fmt(to),
        }
    }
}

impl std::error::Error for DeclareError {}
