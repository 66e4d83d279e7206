//! Commits of one node among several: they are validated and applied when the stream that all nodes
//! follow delivers them.
//!
//! A node sends each transaction with its reads and the sequence of the state that it read. Every
//! node decides in the order of the stream, by the same rule, whether a later record has changed a
//! row that it read. So all nodes reach the same verdict, without a lock and without a leader. The method is
//! that of Hyder (Bernstein, Reid and Das, "Hyder: A Transactional Record Manager for Shared Flash",
//! CIDR 2011) and Tango (Balakrishnan et al., SOSP 2013).
//!
//! The journal's lock serializes deliveries and declarations, so that observers and extensions see
//! records in order. No callback runs under the lock of [`SharedState`], which commits take.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::declare::Redefinition;
use super::pending::{Completion, Pending};
use super::{Committer, DeclareError, Head, MAX_RECORD_LENGTH, MAX_STAGED, Staged, run_actions};
use crate::bytes::{ByteReader, put_number};
use crate::checkpoint::Checkpointer;
use crate::declaration::{Declaration, MergedTables};
use crate::disk;
use crate::error::Error;
use crate::extension::{Extensions, OnDurable, SnapshotBlocks, strip_marker};
use crate::reads::Changes;
use crate::record::{self, Record};
use crate::schema::StoredTable;
use crate::state::{Catalog, Rows, State, Values, Write};
use crate::stream::access::{self, ChangedRow};
use crate::stream::history::History;
use crate::stream::message::{Entry, Message, Origin};
use crate::stream::origins::{Admission, Origins};
use crate::stream::outbox::Outbox;
use crate::transaction::{Action, CommitParts, Transaction};

/// The part of a committer that shares records with other nodes.
pub(crate) struct Shared {
    state: Mutex<SharedState>,
    extension: Extensions,
    /// Notifies the transport that the outbox has a message. Takes no lock of the store.
    wake: Box<dyn Fn() + Send + Sync>,
}

struct SharedState {
    /// The position of the last message in the stream.
    position: u64,
    /// The sequence of the last record of table definitions.
    catalog_sequence: u64,
    history: History,
    origins: Origins,
    outbox: Outbox<Waiting>,
    /// Bytes of messages since the last mark.
    growth: u64,
    /// Why no entry is accepted, if none is.
    rejected: Option<Error>,
}

/// The callers that wait for an entry of this node.
enum Waiting {
    Rows { completion: Arc<Completion>, after_commit: Vec<Action> },
    Tables { declaration: Declaration, completion: Arc<Completion> },
    Extension { on_durable: OnDurable, completion: Arc<Completion> },
    Mark(OnMark),
}

/// Receives the snapshot at a mark.
pub(crate) type OnMark = Box<dyn FnOnce(SharedSnapshot) + Send>;

/// The effect of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivered {
    /// It was applied, or a part of it is kept.
    Applied,
    /// It was sent twice, or an earlier message of its node was lost.
    Ignored,
    /// An earlier message of this node was lost: send all unconfirmed ones again.
    NeedsResend,
}

/// All tables, and the state of the extension, at one position of the stream.
pub(crate) struct SharedSnapshot {
    pub(crate) position: u64,
    header: Vec<u8>,
    state: Arc<State>,
    extension: Option<SnapshotBlocks>,
}

/// The result of the entries of one message, before it becomes visible.
#[derive(Default)]
struct Outcome {
    group: Vec<Staged>,
    /// Commits that conflict.
    refused: Vec<Arc<Completion>>,
    /// Declarations that another one has preceded.
    again: Vec<(Declaration, Arc<Completion>)>,
    /// Whether the catalog was replaced.
    is_redefined: bool,
    mark: Option<OnMark>,
}

/// The version of the header of a snapshot.
const HEADER_VERSION: u8 = 1;

impl Shared {
    /// Begins with an empty stream.
    pub(crate) fn new(extension: Extensions, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        let state = SharedState {
            position: 0,
            catalog_sequence: 0,
            history: History::default(),
            origins: Origins::default(),
            outbox: Outbox::new(new_origin()),
            growth: 0,
            rejected: None,
        };
        Self { state: Mutex::new(state), extension, wake }
    }

    /// Begins at a snapshot. Returns the sequence of its state too; `None` if the header is invalid.
    pub(crate) fn at_snapshot(self, header: &[u8]) -> Option<(Self, u64)> {
        let mut rest = ByteReader(header);
        if rest.byte()? != HEADER_VERSION {
            return None;
        }
        let mut number = || u64::try_from(rest.number()?).ok();
        let (position, sequence, catalog_sequence) = (number()?, number()?, number()?);
        let origins = Origins::read(&mut rest)?;
        if !rest.is_empty() {
            return None;
        }
        let mut state = self.state();
        (state.position, state.catalog_sequence) = (position, catalog_sequence);
        (state.history, state.origins) = (History::after(sequence), origins);
        drop(state);
        Some((self, sequence))
    }

    pub(crate) fn position(&self) -> u64 {
        self.state().position
    }

    pub(crate) const fn extension(&self) -> &Extensions {
        &self.extension
    }

    pub(crate) fn growth(&self) -> u64 {
        self.state().growth
    }

    /// The first unconfirmed message above a number, with its own number.
    pub(crate) fn unconfirmed_after(&self, number: u64) -> Option<(u64, Arc<[u8]>)> {
        self.state().outbox.after(number)
    }

    /// The number of entries that wait for the stream.
    pub(crate) fn waiting(&self) -> usize {
        self.state().outbox.waiting()
    }

    /// Rejects commits from now on with an error, and settles those under way with another one. The
    /// node continues under another name, so that none of its earlier messages is sent again.
    pub(crate) fn cut_off(&self, rejected: Error, pending: &Error) {
        let mut state = self.state();
        if !matches!(state.rejected, Some(Error::Closed | Error::Broken(_))) {
            state.rejected = Some(rejected);
        }
        let abandoned = state.outbox.abandon(new_origin());
        drop(state);
        settle_all(abandoned, pending);
    }

    /// Accepts commits again.
    pub(crate) fn reconnect(&self) {
        let mut state = self.state();
        if matches!(state.rejected, Some(Error::CutOff(_))) {
            state.rejected = None;
        }
    }

    /// Whether no entry is accepted.
    pub(super) fn is_rejecting(&self) -> bool {
        self.state().rejected.is_some()
    }

    fn push(&self, entry: Entry<'_>, waiting: Waiting) -> Result<(), Error> {
        let mut state = self.state();
        state.check_room()?;
        state.outbox.push(entry, waiting);
        drop(state);
        (self.wake)();
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedState {
    fn check_room(&self) -> Result<(), Error> {
        if let Some(rejected) = &self.rejected {
            return Err(rejected.clone());
        }
        let has_room = self.outbox.has_room() && self.outbox.waiting() < MAX_STAGED;
        if has_room { Ok(()) } else { Err(Error::Busy) }
    }

    fn header(&self, sequence: u64) -> Vec<u8> {
        header(self.position, sequence, self.catalog_sequence, &self.origins)
    }
}

/// Encodes the header of a snapshot: its position, the sequence of its state, and that of the last
/// definitions of tables.
fn header(position: u64, sequence: u64, catalog_sequence: u64, origins: &Origins) -> Vec<u8> {
    let mut to = vec![HEADER_VERSION];
    for number in [position, sequence, catalog_sequence] {
        put_number(&mut to, u128::from(number));
    }
    origins.write(&mut to);
    to
}

impl SharedSnapshot {
    /// The snapshot with which the stream begins: no node has written a message before it.
    pub(crate) fn first(
        position: u64,
        state: Arc<State>,
        extension: Option<SnapshotBlocks>,
    ) -> Self {
        let header = header(position, state.sequence, state.sequence, &Origins::default());
        Self { position, header, state, extension }
    }

    /// The positions and nodes that a replica needs besides tables and extension.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header
    }

    /// Writes the tables and the extension as blocks of at most 8 MB.
    pub(crate) fn write(
        self,
        put: &mut (dyn FnMut(&[u8]) -> Result<(), String> + Send),
    ) -> Result<(), String> {
        let checkpointer = Checkpointer::new(0, Extensions::default(), u64::MAX);
        let written = checkpointer.write(&self.state, self.extension, &mut PutBlock(put));
        written.map_err(|error| error.to_string())
    }
}

/// Writes blocks by a function.
struct PutBlock<'p>(&'p mut (dyn FnMut(&[u8]) -> Result<(), String> + Send));

impl crate::journal::SnapshotWriter for PutBlock<'_> {
    fn block(&mut self, bytes: &[u8]) -> Result<(), crate::journal::Error> {
        (self.0)(bytes).map_err(crate::journal::Error::Refused)
    }

    fn finish(self: Box<Self>) -> Result<(), crate::journal::Error> {
        Ok(())
    }
}

impl Committer {
    /// Shares all records with other nodes.
    pub(crate) fn sharing(self, shared: Shared) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// The stream of several nodes, if there is one.
    pub(crate) const fn shared(&self) -> Option<&Shared> {
        self.shared.as_ref()
    }

    /// Sends a transaction to the stream, unless it conflicts already.
    pub(super) fn commit_shared(
        self: &Arc<Self>,
        shared: &Shared,
        transaction: Transaction,
    ) -> Result<Pending, Error> {
        let CommitParts { definitions, base, reads, writes, after_commit, .. } =
            transaction.into_parts();
        let completion = Arc::new(Completion::default());
        let pending = Pending { committer: Arc::clone(self), completion: Arc::clone(&completion) };
        if writes.is_empty() {
            run_actions(after_commit);
            completion.settle(Ok(base.sequence));
            return Ok(pending);
        }
        let record = record::rows(&writes, &definitions.positions);
        if record.len() > MAX_RECORD_LENGTH {
            return Err(Error::TooLarge);
        }
        let reads = access::write(&reads, &definitions);
        let accesses = access::read(&reads).unwrap_or_default();
        drop(self.open_head()?);
        let state = shared.state();
        let written = writes.iter().map(|write| definitions.positions[write.table]);
        let tables = &definitions.stored;
        let conflicts = state.history.conflicts(base.sequence, &accesses, written, tables);
        drop(state);
        if conflicts {
            return Err(self.conflict());
        }
        // The stream settles it: a waiting thread has nothing to write.
        completion.status().is_claimed = true;
        let entry = Entry::Rows { base: base.sequence, reads: &reads, record: &record };
        shared.push(entry, Waiting::Rows { completion, after_commit })?;
        Ok(pending)
    }

    /// Sends a record of the extension, which begins with its marker, to the stream.
    pub(super) fn append_shared(
        self: &Arc<Self>,
        shared: &Shared,
        record: &[u8],
        on_durable: OnDurable,
    ) -> Result<Pending, Error> {
        let completion = Arc::new(Completion::default());
        completion.status().is_claimed = true;
        let pending = Pending { committer: Arc::clone(self), completion: Arc::clone(&completion) };
        drop(self.open_head()?);
        let entry = Entry::Extension(strip_marker(record).unwrap_or_default());
        shared.push(entry, Waiting::Extension { on_durable, completion })?;
        Ok(pending)
    }

    /// Declares tables. If the stored columns are new, the stream decides the order of
    /// declarations.
    pub(crate) fn declare_shared(
        self: &Arc<Self>,
        shared: &Shared,
        declaration: Declaration,
    ) -> Result<Pending, DeclareError> {
        let completion = Arc::new(Completion::default());
        completion.status().is_claimed = true;
        let pending = Pending { committer: Arc::clone(self), completion: Arc::clone(&completion) };
        self.propose(shared, declaration, completion)?;
        Ok(pending)
    }

    fn propose(
        self: &Arc<Self>,
        shared: &Shared,
        declaration: Declaration,
        completion: Arc<Completion>,
    ) -> Result<(), DeclareError> {
        drop(self.open_head()?);
        let base = self.head_state();
        let catalog = &base.definitions;
        let merged = declaration.merged(catalog).map_err(DeclareError::Rejected)?;
        if merged.stored != catalog.stored {
            let record = record::tables(&merged.stored);
            let entry = Entry::Tables { base: base.sequence, record: &record };
            return Ok(shared.push(entry, Waiting::Tables { declaration, completion })?);
        }
        // Built during deliveries, and again if one of them has changed the tables.
        let redefinition = Redefinition::of(&base, merged)?;
        let journal = self.journal();
        let mut head = self.head();
        let mut outcome = Outcome::default();
        let installed = if redefinition.fits(&head, &base) {
            install(&mut head, redefinition, &mut outcome);
            Ok(true)
        } else {
            declare_in(&mut head, &declaration, &mut outcome)
        };
        let state = Arc::clone(&head.state);
        drop(head);
        let old = self.publish(&mut outcome.group, state);
        drop(journal);
        drop(old);
        if installed? {
            completion.settle(Ok(base.sequence));
            return Ok(());
        }
        self.propose(shared, declaration, completion)
    }

    /// Places a mark in the stream. `then` receives the snapshot at the mark; it must be quick.
    pub(crate) fn request_snapshot(&self, shared: &Shared, then: OnMark) -> Result<(), Error> {
        drop(self.open_head()?);
        shared.push(Entry::Mark, Waiting::Mark(then))
    }

    /// Applies the message at a position of the stream.
    ///
    /// # Errors
    ///
    /// This node cannot follow the stream any more. The message names the correction.
    pub(crate) fn deliver(
        self: &Arc<Self>,
        shared: &Shared,
        position: u64,
        bytes: &[u8],
    ) -> Result<Delivered, String> {
        let message = Message::read(bytes)?;
        let journal = self.journal();
        let mut state = shared.state();
        if position.checked_sub(1) != Some(state.position) {
            return Err(format!("message {position} follows message {}", state.position));
        }
        state.position = position;
        state.growth += bytes.len() as u64;
        let is_own = message.origin == state.outbox.origin();
        let admission = state.origins.admit(&message, position);
        let own = match admission {
            Admission::Gap if is_own => return Ok(Delivered::NeedsResend),
            Admission::Repeated | Admission::Gap => return Ok(Delivered::Ignored),
            _ if is_own => state.outbox.confirm(),
            _ => Vec::new(),
        };
        let Admission::Complete(body) = admission else {
            drop(state);
            settle_all(own, &Error::Conflict);
            return Ok(Delivered::Applied);
        };
        let entries = Entry::read_all(&body).ok_or("an entry cannot be decoded")?;
        let mut head = self.head();
        let mut outcome = Outcome::default();
        let failure: Arc<Mutex<Option<String>>> = Arc::default();
        let mut own = own.into_iter();
        let marks = entries.iter().rev().skip(1).filter(|entry| **entry == Entry::Mark);
        if marks.count() > 0 {
            return Err("a mark is not the last entry of its message".to_owned());
        }
        for entry in entries {
            let waiting = own.next();
            match entry {
                Entry::Rows { base, reads, record } => {
                    state.apply_rows(&mut head, (base, reads, record), waiting, &mut outcome)?;
                }
                Entry::Tables { base, record } => {
                    state.apply_tables(&mut head, (base, record), waiting, &mut outcome)?;
                }
                Entry::Extension(record) => {
                    let follow = || shared.follower(record, &failure);
                    apply_extension(&mut head, waiting, follow, &mut outcome);
                }
                Entry::Mark => {
                    state.history.mark(head.state.sequence);
                    state.growth = 0;
                    if let Some(Waiting::Mark(then)) = waiting {
                        outcome.mark = Some(then);
                    }
                }
            }
        }
        let latest = Arc::clone(&head.state);
        let header = outcome.mark.is_some().then(|| state.header(latest.sequence));
        drop((head, state));
        self.show(shared, outcome, latest, header.map(|header| (position, header)));
        drop(journal);
        match failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(why) => Err(why),
            None => Ok(Delivered::Applied),
        }
    }

    /// Makes the result of a message visible.
    fn show(
        self: &Arc<Self>,
        shared: &Shared,
        outcome: Outcome,
        latest: Arc<State>,
        header: Option<(u64, Vec<u8>)>,
    ) {
        let Outcome { mut group, refused, again, is_redefined, mark } = outcome;
        let snapshot_state = Arc::clone(&latest);
        let old = self.publish(&mut group, latest);
        if !is_redefined {
            let _dropped = self.head().keep_spare(old);
        }
        if let (Some(then), Some((position, header))) = (mark, header) {
            let extension = shared.extension.snapshot();
            then(SharedSnapshot { position, header, state: snapshot_state, extension });
        }
        let commits = group.iter().filter(|staged| staged.changes.is_some()).count();
        self.counts.count_group(commits, 0);
        let mut after_commit = Vec::new();
        for staged in group {
            staged.completion.settle(Ok(staged.sequence));
            after_commit.extend(staged.after_commit);
        }
        for completion in refused {
            completion.settle(Err(self.conflict()));
        }
        self.enqueue_actions(after_commit);
        if !again.is_empty() {
            // On another thread, because the caller holds the journal.
            let committer = Arc::clone(self);
            let propose: Action = Box::new(move || {
                let Some(shared) = &committer.shared else { return };
                for (declaration, completion) in again {
                    let proposed = committer.propose(shared, declaration, Arc::clone(&completion));
                    if let Err(error) = proposed {
                        completion.settle(Err(match error {
                            DeclareError::Failed(error) => error,
                            DeclareError::Rejected(why) => Error::Broken(why.into()),
                        }));
                    }
                }
            });
            self.enqueue_actions(vec![propose]);
        }
    }
}

impl SharedState {
    fn apply_rows(
        &mut self,
        head: &mut Head,
        (base, reads, record): (u64, &[u8], &[u8]),
        waiting: Option<Waiting>,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let accesses = access::read(reads).ok_or("a read set cannot be decoded")?;
        let Some(Record::Rows(writes)) = record::read(record) else {
            return Err("a record of rows cannot be decoded".to_owned());
        };
        let tables = &head.state.definitions.stored;
        let written = || writes.iter().map(|write| write.table);
        if written().any(|table| table >= tables.len()) {
            return Err("a record names a table that is not defined".to_owned());
        }
        let (completion, after_commit) = match waiting {
            Some(Waiting::Rows { completion, after_commit }) => (completion, after_commit),
            _ => (Arc::default(), Vec::new()),
        };
        if self.history.conflicts(base, &accesses, written(), tables) {
            outcome.refused.push(completion);
            return Ok(());
        }
        check_rows(&head.state.definitions, &writes)?;
        let (changes, rows) = apply_writes(head, writes);
        self.history.note(changes.sequence, rows);
        let sequence = changes.sequence;
        let changes = Arc::new(changes);
        head.remember(&changes);
        outcome.group.push(staged(sequence, Some(changes), None, completion, after_commit));
        Ok(())
    }

    fn apply_tables(
        &mut self,
        head: &mut Head,
        (base, record): (u64, &[u8]),
        waiting: Option<Waiting>,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let Some(Record::Tables(stored)) = record::read(record) else {
            return Err("a record of tables cannot be decoded".to_owned());
        };
        let declared = match waiting {
            Some(Waiting::Tables { declaration, completion }) => Some((declaration, completion)),
            _ => None,
        };
        if self.catalog_sequence > base {
            outcome.again.extend(declared);
            return Ok(());
        }
        let before = Arc::clone(&head.state.definitions);
        let is_kept = |(old, new): (&StoredTable, &StoredTable)| old.name == new.name;
        if stored.len() < before.stored.len() || !before.stored.iter().zip(&stored).all(is_kept) {
            return Err("a record of tables omits a table".to_owned());
        }
        let sequence = head.advance(0, None).sequence;
        self.catalog_sequence = sequence;
        for (table, (old, new)) in before.stored.iter().zip(&stored).enumerate() {
            if old != new {
                self.history.note_redefined(sequence, table);
            }
        }
        let merged = MergedTables::follow(&before, stored)?;
        let redefinition =
            Redefinition::of(&head.state, merged).map_err(|error| error.to_string())?;
        install(head, redefinition, outcome);
        if let Some((declaration, completion)) = declared {
            match declare_in(head, &declaration, outcome) {
                Ok(true) => {
                    outcome.group.push(staged(sequence, None, None, completion, Vec::new()));
                }
                Ok(false) => outcome.again.push((declaration, completion)),
                Err(error) => completion.settle(Err(Error::Broken(error.to_string().into()))),
            }
        }
        Ok(())
    }
}

impl Shared {
    /// The callback for a record of another node.
    fn follower(&self, record: &[u8], failure: &Arc<Mutex<Option<String>>>) -> OnDurable {
        let (extension, bytes) = (self.extension.clone(), record.to_vec());
        let failure = Arc::clone(failure);
        Box::new(move |sequence| {
            if let Err(why) = extension.follow(sequence, &bytes) {
                let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(why);
            }
        })
    }
}

fn apply_extension(
    head: &mut Head,
    waiting: Option<Waiting>,
    follow: impl FnOnce() -> OnDurable,
    outcome: &mut Outcome,
) {
    let sequence = head.advance(0, None).sequence;
    head.remember(&Arc::new(Changes::empty(sequence)));
    let (on_durable, completion) = match waiting {
        Some(Waiting::Extension { on_durable, completion }) => (on_durable, completion),
        _ => (follow(), Arc::default()),
    };
    outcome.group.push(staged(sequence, None, Some(on_durable), completion, Vec::new()));
}

/// Checks that this program can decode the rows of its tables.
fn check_rows(definitions: &Catalog, writes: &[Write]) -> Result<(), String> {
    for Write { table, row, .. } in writes {
        let own = definitions.positions.iter().position(|position| position == table);
        if let Some((own, row)) = own.zip(row.as_ref()) {
            let definition = &definitions[own];
            if definition.read(row, &mut Values::new()).is_none() {
                let name = &definition.schema.name;
                return Err(format!(
                    "another node wrote a row of `{name}` that this program cannot decode: run the same program on all nodes"
                ));
            }
        }
    }
    Ok(())
}

/// Applies rows, by stored tables, to the head. Returns the changes in the terms of this program, and
/// the rows in those of all nodes.
fn apply_writes(head: &mut Head, writes: Vec<Write>) -> (Changes, Vec<ChangedRow>) {
    let state = head.advance(0, None);
    let definitions = Arc::clone(&state.definitions);
    let (mut declared, mut rows) = (Vec::new(), Vec::new());
    for write in writes {
        let Write { table, id, row } = write;
        let own = definitions.positions.iter().position(|position| *position == table);
        let before = match own {
            Some(own) => state.tables[own].rows.get(id).map(Into::into),
            None => apply_undeclared(state, table, (id, row.as_deref())),
        };
        rows.push(ChangedRow { table, id, before, after: row.clone() });
        declared.extend(own.map(|own| Write { table: own, id, row }));
    }
    (Changes::apply(&definitions, state, &declared), rows)
}

/// Applies a row of a table that the program does not declare, and returns the one before.
fn apply_undeclared(
    state: &mut State,
    table: usize,
    (id, row): (crate::id::RowId, Option<&[u8]>),
) -> Option<crate::row::Row> {
    let undeclared = Arc::make_mut(&mut state.undeclared);
    let known = undeclared.iter().position(|(position, _)| *position == table);
    let known = known.unwrap_or_else(|| {
        undeclared.push((table, Rows::default()));
        undeclared.len() - 1
    });
    let rows = &mut undeclared[known].1;
    let before = rows.get(id).map(Into::into);
    match row {
        Some(row) => rows.insert(id, row),
        None => rows.remove(id),
    }
    before
}

/// Declares tables whose columns are stored already. Returns false if they are not.
fn declare_in(
    head: &mut Head,
    declaration: &Declaration,
    outcome: &mut Outcome,
) -> Result<bool, DeclareError> {
    let catalog = &head.state.definitions;
    let merged = declaration.merged(catalog).map_err(DeclareError::Rejected)?;
    if merged.stored != catalog.stored {
        return Ok(false);
    }
    let redefinition = Redefinition::of(&head.state, merged)?;
    install(head, redefinition, outcome);
    Ok(true)
}

/// Replaces the catalog of the head, without a record.
fn install(head: &mut Head, redefinition: Redefinition, outcome: &mut Outcome) {
    let redefined = redefinition.redefined.clone();
    let (state, rewritten) = redefinition.applied_to(&head.state);
    let sequence = state.sequence;
    head.state = Arc::new(state);
    // The spare state and the remembered changes belong to the catalog before.
    (head.spare, head.recent_bytes) = (None, 0);
    head.recent.clear();
    outcome.is_redefined = true;
    if !redefined.is_empty() {
        let changes = Arc::new(Changes::redefinition(sequence, redefined, &rewritten));
        outcome.group.push(staged(sequence, Some(changes), None, Arc::default(), Vec::new()));
    }
}

fn staged(
    sequence: u64,
    changes: Option<Arc<Changes>>,
    on_durable: Option<OnDurable>,
    completion: Arc<Completion>,
    after_commit: Vec<Action>,
) -> Staged {
    Staged {
        record: Vec::new(),
        sequence,
        state: None,
        sync: super::Sync::None,
        changes,
        on_durable,
        completion,
        after_commit,
    }
}

fn settle_all(waiting: Vec<Waiting>, error: &Error) {
    for waiting in waiting {
        match waiting {
            Waiting::Rows { completion, .. }
            | Waiting::Tables { completion, .. }
            | Waiting::Extension { completion, .. } => completion.settle(Err(error.clone())),
            // The next snapshot is requested again.
            Waiting::Mark(_) => {}
        }
    }
}

fn new_origin() -> Origin {
    let mut bytes = [0; 16];
    disk::random(&mut bytes);
    Origin(bytes)
}
