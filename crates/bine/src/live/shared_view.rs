//! Shared views: decides when a followed page renders again and which regions its clients receive.
//!
//! A shared view is one page as all clients of one scope see it. The server renders it once for all
//! clients.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bine_html::RegionHash;
use bine_server::{AddressBlock, Retained};

use super::mailbox::Notification;
use super::pace::Pace;
use super::render::{RenderRecord, RenderedRegion, Scope};
use crate::channels::SubscriptionSpec;
use crate::signal_core::SignalRead;
use crate::store::{Changes, ReadSet, Readers};

/// One page as all clients of one scope see it.
pub(super) struct SharedView {
    /// Scheme, host and target of the page.
    pub(super) address: Arc<str>,
    /// The request that each render repeats.
    pub(super) request: Retained,
    /// The properties of the visitor that a render reads: equal values give an equal page.
    pub(super) scope: Scope,
    pub(super) regions: Vec<ViewRegion>,
    /// The rows and ranges that the last render read.
    reads: ReadSet,
    /// The watches of clients that follow by events and by polls. Each client holds a reference,
    /// and so does this view.
    pub(super) watches: [Arc<SubscriptionSpec>; 2],
    /// The channel that carries the patches.
    pub(super) channel: Arc<str>,
    /// The store's sequence when the last render began.
    pub(super) since: u64,
    /// Whether the page displays the list of present users.
    pub(super) shows_presence: bool,
    /// The only address block whose clients have followed the view; `None`: there were several.
    pub(super) owner: Option<AddressBlock>,
    pace: Pace,
    /// When the data that the render read expires, in seconds since 1970.
    pub(super) expires_at: Option<u64>,
    /// The version that the last render recorded.
    pub(super) version: Option<u64>,
    state: ViewState,
}

/// A region as all clients of the view have it.
pub(super) struct ViewRegion {
    /// `None`: the clients may have different contents.
    pub(super) hash: Option<RegionHash>,
    /// How many of the render's reads the region depends on.
    reads: usize,
    /// The numbers of the signals that the region depends on.
    signals: Vec<u64>,
    /// Whether data that the region depends on has changed.
    is_stale: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ViewState {
    /// No dependency has changed.
    Idle,
    /// The view renders again at this time.
    Due(Instant),
    /// The view waits for its turn to render.
    Queued,
    /// A render is in progress.
    Rendering,
}

/// Identifies a view. A slot that is used again gets a new number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ViewId {
    slot: usize,
    number: u64,
}

/// All views that clients follow.
#[derive(Default)]
pub(super) struct SharedViews {
    all: Vec<Option<(u64, Box<SharedView>)>>,
    vacant: Vec<usize>,
    /// Views by the hash of their address and scope.
    by_scope: HashMap<u64, Vec<ViewId>>,
    hasher: RandomState,
    due: BTreeSet<(Instant, ViewId)>,
    /// When the data that views have read expires, in seconds since 1970.
    expirations: BTreeSet<(u64, ViewId)>,
    /// Views added since the last search for views without followers.
    added: usize,
    /// Views whose clients must reload, and since when, oldest first.
    retired: VecDeque<(Instant, SharedView)>,
    next_number: u64,
    /// The views by the table data that they read.
    readers: Readers<ViewId>,
    /// The views by the number of each signal that they read.
    signals: HashMap<u64, BTreeSet<ViewId>>,
    shares: Shares,
    /// Recent commits, for views whose render was in progress: their dependencies were not yet
    /// known.
    recent: VecDeque<Arc<Changes>>,
    /// Size of the recent commits.
    recent_bytes: usize,
    /// Recent commits up to this sequence were dropped.
    forgotten: u64,
}

/// Views in total.
const MAX_VIEWS: usize = 100_000;
const MAX_RECENT: usize = 1024;
const MAX_RECENT_BYTES: usize = 4 << 20;
/// Views are searched for missing followers after this many additions, or half the number of views.
const SWEEP_THRESHOLD: usize = 1024;

impl SharedViews {
    pub(super) const fn len(&self) -> usize {
        self.all.len() - self.vacant.len()
    }

    pub(super) fn get(&mut self, id: ViewId) -> Option<&mut SharedView> {
        match self.all.get_mut(id.slot)? {
            Some((number, view)) if *number == id.number => Some(view),
            _ => None,
        }
    }

    /// Finds the view of an address for this scope.
    pub(super) fn find(&mut self, address: &str, scope: &Scope) -> Option<ViewId> {
        let ids = self.by_scope.get(&self.hasher.hash_one((address, scope)))?.clone();
        ids.into_iter().find(|id| {
            self.get(*id).is_some_and(|own| *own.address == *address && own.scope == *scope)
        })
    }

    /// The view without a scope, if no change is pending.
    pub(super) fn find_idle(&mut self, address: &str) -> Option<ViewId> {
        let id = self.find(address, &Scope::new())?;
        self.get(id).filter(|view| view.state == ViewState::Idle)?;
        Some(id)
    }

    /// Returns a number for the next view or channel.
    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    pub(super) fn add(&mut self, view: SharedView) -> ViewId {
        let number = self.number();
        let hash = self.hasher.hash_one((&*view.address, &view.scope));
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[slot] = Some((number, Box::new(view)));
        let id = ViewId { slot, number };
        self.index(id);
        self.by_scope.entry(hash).or_default().push(id);
        self.added += 1;
        self.index_expiry(id, None);
        id
    }

    pub(super) fn remove(&mut self, id: ViewId) -> Option<SharedView> {
        let _ = self.get(id)?;
        self.unindex(id);
        let (_, view) = self.all[id.slot].take()?;
        self.vacant.push(id.slot);
        if let ViewState::Due(then) = view.state {
            self.due.remove(&(then, id));
        }
        if let Some(expires_at) = view.expires_at {
            self.expirations.remove(&(expires_at, id));
        }
        let hash = self.hasher.hash_one((&*view.address, &view.scope));
        if let Some(ids) = self.by_scope.get_mut(&hash) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_scope.remove(&hash);
            }
        }
        Some(*view)
    }

    /// Whether enough views were added to search for those without followers.
    pub(super) fn is_sweep_due(&self) -> bool {
        self.added >= SWEEP_THRESHOLD.max(self.len() / 2)
    }

    /// Updates the index of expiry times for a view that was indexed with `before`.
    pub(super) fn index_expiry(&mut self, id: ViewId, before: Option<u64>) {
        let expires_at = self.get(id).and_then(|view| view.expires_at);
        if before != expires_at {
            before.map(|before| self.expirations.remove(&(before, id)));
        }
        if let Some(expires_at) = expires_at {
            self.expirations.insert((expires_at, id));
        }
    }

    /// Keeps a view until its clients have read the reload message.
    pub(super) fn retire(&mut self, view: SharedView, now: Instant) {
        self.retired.push_back((now, view));
    }

    /// Takes the views whose clients were instructed to reload at least `age` ago: each client has
    /// read it by now.
    pub(super) fn take_retired(&mut self, now: Instant, age: Duration) -> Vec<SharedView> {
        let count = self.retired.partition_point(|(when, _)| now.duration_since(*when) >= age);
        self.retired.drain(..count).map(|(_, view)| view).collect()
    }

    /// The views without followers.
    pub(super) fn without_followers(&mut self) -> Vec<ViewId> {
        self.added = 0;
        let all = self.all.iter().enumerate();
        let without_followers = all.filter_map(|(slot, own)| {
            let (number, view) = own.as_ref()?;
            view.has_no_followers().then_some(ViewId { slot, number: *number })
        });
        without_followers.collect()
    }

    /// Marks the views that depend on these notifications and schedules them. Returns how many
    /// views were compared.
    ///
    /// The notifications so far, with these, contain all commits up to `sequence`.
    pub(super) fn handle(
        &mut self,
        notifications: Vec<Notification>,
        sequence: u64,
        now: Instant,
        second: u64,
    ) -> usize {
        let (mut commits, mut signals, mut everything) = (Vec::new(), Vec::new(), false);
        for notification in notifications {
            match notification {
                Notification::Commit(changes) => commits.push(changes),
                Notification::Signal(number) => signals.push(number),
                Notification::All => everything = true,
                Notification::Wake => {}
            }
        }
        while let Some((expires_at, id)) =
            self.expirations.first().copied().filter(|(expires_at, _)| *expires_at <= second)
        {
            self.expirations.remove(&(expires_at, id));
            if let Some(view) = self.get(id) {
                view.expires_at = None;
                view.mark_all_stale();
            }
            self.schedule(id, now);
        }
        let compared = if everything { self.ids() } else { self.affected_by(&commits, &signals) };
        for id in &compared {
            match self.get(*id) {
                Some(view) if everything => view.mark_all_stale(),
                Some(view) => view.mark_stale(&commits, &signals),
                None => {}
            }
            self.schedule(*id, now);
        }
        if everything {
            // The dropped notifications may have contained commits.
            self.forgotten = self.forgotten.max(sequence);
        }
        for changes in commits {
            self.recent_bytes += changes.bytes();
            self.recent.push_back(changes);
            while self.recent.len() > MAX_RECENT || self.recent_bytes > MAX_RECENT_BYTES {
                let Some(oldest) = self.recent.pop_front() else { break };
                self.recent_bytes -= oldest.bytes();
                self.forgotten = self.forgotten.max(oldest.sequence);
            }
        }
        compared.len()
    }

    fn ids(&self) -> BTreeSet<ViewId> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(slot, own)| Some(ViewId { slot, number: own.as_ref()?.0 })).collect()
    }

    /// The views that these commits and signals may affect, with few false positives.
    fn affected_by(&self, commits: &[Arc<Changes>], signals: &[u64]) -> BTreeSet<ViewId> {
        let mut ids = BTreeSet::new();
        for commit in commits {
            self.readers.touched(commit, |id| {
                ids.insert(id);
            });
        }
        let of_signals = signals.iter().filter_map(|signal| self.signals.get(signal));
        ids.extend(of_signals.flatten());
        ids
    }

    /// Whether clients of this block may have one more view.
    pub(super) fn has_room(&self, block: AddressBlock) -> bool {
        self.len() < MAX_VIEWS && self.shares.has_room(block)
    }

    /// Adds a client of this block to a view.
    pub(super) fn add_client(&mut self, id: ViewId, block: AddressBlock) {
        let Some(view) = self.get(id) else { return };
        let owner = view.owner;
        view.owner = owner.filter(|owner| *owner == block);
        if view.owner != owner {
            let reads = view.reads.len();
            self.shares.release(owner, reads);
            self.shares.charge(None, reads);
        }
    }

    /// Merges a render for a client that joins, which has the same number of regions.
    pub(super) fn merge_join(&mut self, id: ViewId, record: &RenderRecord) {
        self.unindex(id);
        if let Some(view) = self.get(id) {
            view.merge_join(record);
        }
        self.index(id);
    }

    /// Applies a new render. Returns the regions that have changed, or `None` if the page has other
    /// regions, another scope or another version.
    pub(super) fn follow<'n>(
        &mut self,
        id: ViewId,
        record: &'n RenderRecord,
    ) -> Option<Vec<(usize, &'n RenderedRegion)>> {
        self.unindex(id);
        let changed = self.get(id).and_then(|view| view.follow(record));
        self.index(id);
        changed
    }

    /// Indexes the dependencies of a view. If its block has no room for more reads, the view
    /// depends on whole tables instead.
    fn index(&mut self, id: ViewId) {
        let Some(Some((_, view))) = self.all.get_mut(id.slot) else { return };
        if !self.shares.has_room_for_reads(view.owner, view.reads.len()) {
            view.reads.condense();
        }
        self.shares.charge(view.owner, view.reads.len());
        self.readers.insert(id, &view.reads);
        for signal in view.regions.iter().flat_map(|region| &region.signals) {
            self.signals.entry(*signal).or_default().insert(id);
        }
    }

    /// Removes the dependencies of a view from the indices.
    fn unindex(&mut self, id: ViewId) {
        let Some(Some((_, view))) = self.all.get(id.slot) else { return };
        self.shares.release(view.owner, view.reads.len());
        self.readers.remove(id, &view.reads);
        for signal in view.regions.iter().flat_map(|region| &region.signals) {
            if let Some(ids) = self.signals.get_mut(signal) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.signals.remove(signal);
                }
            }
        }
    }

    /// Schedules a render of a view if a dependency has changed.
    pub(super) fn schedule(&mut self, id: ViewId, now: Instant) {
        let Some(view) = self.get(id) else { return };
        if view.state == ViewState::Idle && view.is_stale() {
            let then = view.pace.next(now);
            view.state = ViewState::Due(then);
            self.due.insert((then, id));
        }
    }

    /// Takes a view that is due; it then waits for a thread.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<ViewId> {
        let (_, id) = self.due.first().copied().filter(|(then, _)| *then <= now)?;
        self.due.pop_first();
        self.get(id)?.state = ViewState::Queued;
        Some(id)
    }

    /// Marks a view as rendering, with the store as of `since`.
    pub(super) fn begin_render(&mut self, id: ViewId, now: Instant, since: u64) {
        let Some(view) = self.get(id) else { return };
        (view.state, view.since) = (ViewState::Rendering, since);
        view.pace.begin(now);
        // The render may miss changes from now on.
        view.regions.iter_mut().for_each(|region| region.is_stale = false);
    }

    /// Marks the render of a view as ended.
    pub(super) fn end_render(&mut self, id: ViewId) -> Option<&mut SharedView> {
        let view = self.get(id)?;
        view.state = ViewState::Idle;
        Some(view)
    }

    /// Returns the time until the next view is due, if no notification arrives before.
    pub(super) fn next_due(&self, now: Instant, second: u64) -> Option<Duration> {
        let due = self.due.first().map(|(then, _)| then.saturating_duration_since(now));
        let expires_at = self.expirations.first();
        let expires_at = expires_at
            .map(|(expires_at, _)| Duration::from_secs(expires_at.saturating_sub(second).max(1)));
        due.into_iter().chain(expires_at).min()
    }

    /// Compares a render that began at `since` with the changes since then: the server handled
    /// these before the render's dependencies were known.
    pub(super) fn catch_up(&mut self, id: ViewId, record: &RenderRecord, since: u64, now: Instant) {
        let (recent, forgotten) = (std::mem::take(&mut self.recent), self.forgotten);
        if let Some(view) = self.get(id) {
            if forgotten > since {
                view.mark_all_stale();
            }
            let late: Vec<_> = recent.iter().filter(|own| own.sequence > since).cloned().collect();
            let stale = record.signals.iter().filter(|signal| !signal.is_current());
            let stale: Vec<u64> = stale.map(SignalRead::number).collect();
            view.mark_stale(&late, &stale);
        }
        self.recent = recent;
        self.schedule(id, now);
    }
}

/// How many views the clients of each address block have, and how much these have read.
#[derive(Default)]
struct Shares {
    blocks: BTreeMap<AddressBlock, Share>,
    /// Reads that are indexed for all views.
    reads: usize,
}

#[derive(Default)]
struct Share {
    views: usize,
    reads: usize,
}

/// Views that only one address block follows. Clients on the server's own machine may have six
/// times as many, since a proxy there acts for many.
const MAX_OF_BLOCK: usize = MAX_VIEWS / 8;
/// Reads that are indexed for all views, some hundred bytes each. Beyond that, a view depends on
/// whole tables.
const MAX_READS: usize = 1 << 20;
/// Reads that are indexed for the views of one address block.
const MAX_READS_OF_BLOCK: usize = MAX_READS / 8;

impl Shares {
    fn has_room(&self, block: AddressBlock) -> bool {
        self.blocks.get(&block).is_none_or(|own| own.views < MAX_OF_BLOCK * factor(block))
    }

    fn has_room_for_reads(&self, owner: Option<AddressBlock>, reads: usize) -> bool {
        let own = owner.and_then(|block| self.blocks.get(&block));
        let of_block = own.map_or(0, |own| own.reads);
        let most_of_block = owner.map_or(MAX_READS, |own| MAX_READS_OF_BLOCK * factor(own));
        self.reads + reads <= MAX_READS && of_block + reads <= most_of_block
    }

    fn charge(&mut self, owner: Option<AddressBlock>, reads: usize) {
        self.reads += reads;
        if let Some(block) = owner {
            let own = self.blocks.entry(block).or_default();
            (own.views, own.reads) = (own.views + 1, own.reads + reads);
        }
    }

    fn release(&mut self, owner: Option<AddressBlock>, reads: usize) {
        self.reads -= reads;
        let Some(block) = owner else { return };
        let Some(own) = self.blocks.get_mut(&block) else { return };
        (own.views, own.reads) = (own.views - 1, own.reads - reads);
        if own.views == 0 {
            self.blocks.remove(&block);
        }
    }
}

const fn factor(block: AddressBlock) -> usize {
    if block.is_local() { 6 } else { 1 }
}

impl SharedView {
    pub(super) fn new(
        address: Arc<str>,
        request: Retained,
        channel: Arc<str>,
        watches: [Arc<SubscriptionSpec>; 2],
        since: u64,
        now: Instant,
    ) -> Self {
        let (scope, regions, reads) = (Scope::new(), Vec::new(), ReadSet::default());
        let (expires_at, state) = (None, ViewState::Idle);
        let (shows_presence, owner) = (false, Some(request.incoming().peer.block()));
        Self {
            address,
            request,
            scope,
            regions,
            reads,
            watches,
            channel,
            since,
            shows_presence,
            owner,
            pace: Pace::new(now),
            expires_at,
            version: None,
            state,
        }
    }

    /// Stores the result of the first render.
    pub(super) fn set(&mut self, record: &mut RenderRecord) {
        self.scope = std::mem::take(&mut record.scope);
        self.version = record.version;
        self.reads.clone_from(&record.reads);
        (self.expires_at, self.shows_presence) = (record.expires_at, record.presence.is_some());
        self.set_pace(record);
        self.regions = record.regions.iter().map(|region| ViewRegion::of(region, record)).collect();
    }

    fn follow<'n>(&mut self, record: &'n RenderRecord) -> Option<Vec<(usize, &'n RenderedRegion)>> {
        let is_same = self.scope == record.scope && self.version == record.version;
        if !is_same || self.regions.len() != record.regions.len() {
            return None;
        }
        self.reads.clone_from(&record.reads);
        (self.expires_at, self.shows_presence) = (record.expires_at, record.presence.is_some());
        self.set_pace(record);
        let mut changed = Vec::new();
        for (number, (own, new)) in self.regions.iter_mut().zip(&record.regions).enumerate() {
            let ViewRegion { hash, is_stale, .. } = *own;
            *own = ViewRegion { is_stale, ..ViewRegion::of(new, record) };
            if own.hash != hash {
                changed.push((number, new));
            }
        }
        Some(changed)
    }

    fn set_pace(&mut self, record: &RenderRecord) {
        if record.has_written {
            self.pace.slow_down();
        } else {
            self.pace.adjust(record.cost, self.followers());
        }
    }

    /// Handles a failed render: the view retries after a longer pause, whether or not data changes.
    pub(super) fn fail(&mut self) {
        self.pace.slow_down();
        self.mark_all_stale();
    }

    /// Merges a render for a client that joins, which has the same number of regions. Regions that
    /// differ are sent to all clients after the next render, since the server cannot know which of
    /// the two contents is newer.
    fn merge_join(&mut self, record: &RenderRecord) {
        self.shows_presence |= record.presence.is_some();
        for (own, new) in self.regions.iter_mut().zip(&record.regions) {
            if own.hash != Some(new.hash) {
                (own.hash, own.is_stale) = (None, true);
            }
            let signals = record.signals[..new.signals].iter().map(SignalRead::number);
            for signal in signals {
                if !own.signals.contains(&signal) {
                    own.signals.push(signal);
                }
            }
        }
    }

    pub(super) fn mark_all_stale(&mut self) {
        self.regions.iter_mut().for_each(|region| region.is_stale = true);
    }

    fn mark_stale(&mut self, commits: &[Arc<Changes>], signals: &[u64]) {
        let Self { regions, reads, .. } = self;
        for region in regions.iter_mut().filter(|region| !region.is_stale) {
            region.is_stale = signals.iter().any(|signal| region.signals.contains(signal))
                || commits.iter().any(|own| reads.is_touched_within(region.reads, own));
        }
    }

    fn is_stale(&self) -> bool {
        self.regions.iter().any(|region| region.is_stale)
    }

    pub(super) fn has_no_followers(&self) -> bool {
        self.followers() == 0
    }

    /// Returns the number of clients that follow the view.
    fn followers(&self) -> usize {
        self.watches.iter().map(|watch| Arc::strong_count(watch) - 1).sum()
    }
}

impl ViewRegion {
    fn of(region: &RenderedRegion, record: &RenderRecord) -> Self {
        let signals = record.signals[..region.signals].iter().map(SignalRead::number).collect();
        Self { hash: Some(region.hash), reads: region.reads, signals, is_stale: false }
    }
}

#[cfg(test)]
mod tests;
