//! Shared views: decides when a followed page renders again and which regions its clients receive.
//!
//! A shared view is one page as all clients of one scope see it. The server renders it once for all
//! of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bine_html::RegionHash;
use bine_server::{AddressBlock, Retained};

use super::mailbox::News;
use super::run::{Looks, Notes, Written};
use crate::channels::Watch;
use crate::signal_core::SignalRead;
use crate::store::{Changes, ReadSet, Readers};

/// One page as all clients of one scope see it.
pub(super) struct Showing {
    /// Scheme, host and target of the page.
    pub(super) address: Arc<str>,
    /// The request that each render repeats.
    pub(super) request: Retained,
    /// What a render reads about its visitor, with the values: equal values give an equal page.
    pub(super) looks: Looks,
    pub(super) regions: Vec<Shown>,
    /// The rows and ranges that the last render read.
    reads: ReadSet,
    /// The watches of clients that follow by events and by polls. Each client holds a reference,
    /// and so does this view.
    pub(super) watches: [Arc<Watch>; 2],
    /// The channel that carries the patches.
    pub(super) channel: Arc<str>,
    /// The store's sequence when the last render began.
    pub(super) since: u64,
    /// Whether the page displays the list of present users.
    pub(super) shows_who: bool,
    /// The only address block whose clients have followed the view; `None`: there were several.
    pub(super) owner: Option<AddressBlock>,
    /// Least time between the starts of two renders.
    pause: Duration,
    /// When the data that the render read expires, in seconds since 1970.
    pub(super) ends: Option<u64>,
    state: State,
    /// When the last render began.
    begun: Instant,
}

/// A region as all clients of the view have it.
pub(super) struct Shown {
    /// `None`: the clients may have different contents.
    pub(super) hash: Option<RegionHash>,
    /// How many of the render's reads the region depends on.
    reads: usize,
    /// The numbers of the signals that the region depends on.
    signals: Vec<u64>,
    /// Whether data that the region depends on has changed.
    is_touched: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// No dependency has changed.
    Rests,
    /// The view renders again at this time.
    Due(Instant),
    /// The view waits for its turn to render.
    Queued,
    /// A render is in progress.
    Made,
}

/// Identifies a view. A slot that is used again gets a new number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Name {
    place: usize,
    number: u64,
}

/// All views that clients follow.
#[derive(Default)]
pub(super) struct Showings {
    all: Vec<Option<(u64, Box<Showing>)>>,
    vacant: Vec<usize>,
    /// Views by the hash of their address and scope.
    names: HashMap<u64, Vec<Name>>,
    hasher: RandomState,
    due: BTreeSet<(Instant, Name)>,
    /// When the data that views have read expires, in seconds since 1970.
    ends: BTreeSet<(u64, Name)>,
    /// Views added since the last search for views without followers.
    added: usize,
    /// Views whose clients were told to reload, with the time of that, oldest first.
    departed: VecDeque<(Instant, Showing)>,
    next_number: u64,
    /// The views by the table data that they read.
    readers: Readers<Name>,
    /// The views by the number of each signal that they read.
    signals: HashMap<u64, BTreeSet<Name>>,
    shares: Shares,
    /// Recent commits, for views whose render was in progress: their dependencies were not yet
    /// known.
    recent: VecDeque<Arc<Changes>>,
    /// Size of the recent commits.
    recent_bytes: usize,
    /// Recent commits up to this sequence were dropped.
    forgotten: u64,
}

/// Least time between the starts of two renders: newer changes replace those not yet shown.
pub(super) const QUIET: Duration = Duration::from_millis(40);
/// The pause after a failed render, and of a page that changes tables while it renders.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// Views in total.
const MOST: usize = 100_000;
const MOST_RECENT: usize = 1024;
const MOST_RECENT_BYTES: usize = 4 << 20;
/// Views are searched for missing followers after this many additions, or half as many as exist.
const MANY: usize = 1024;

impl Showings {
    pub(super) const fn len(&self) -> usize {
        self.all.len() - self.vacant.len()
    }

    pub(super) fn get(&mut self, name: Name) -> Option<&mut Showing> {
        match self.all.get_mut(name.place)? {
            Some((number, showing)) if *number == name.number => Some(showing),
            _ => None,
        }
    }

    /// Finds the view of an address for this scope.
    pub(super) fn find(&mut self, address: &str, looks: &Looks) -> Option<Name> {
        let names = self.names.get(&self.hasher.hash_one((address, looks)))?.clone();
        names.into_iter().find(|name| {
            self.get(*name).is_some_and(|own| *own.address == *address && own.looks == *looks)
        })
    }

    /// The view without a scope, if no change is pending.
    pub(super) fn settled(&mut self, address: &str) -> Option<Name> {
        let name = self.find(address, &Looks::new())?;
        self.get(name).filter(|showing| showing.state == State::Rests)?;
        Some(name)
    }

    /// Returns a number for the next view or channel.
    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    pub(super) fn add(&mut self, showing: Showing) -> Name {
        let number = self.number();
        let hash = self.hasher.hash_one((&*showing.address, &showing.looks));
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[place] = Some((number, Box::new(showing)));
        let name = Name { place, number };
        self.index(name);
        self.names.entry(hash).or_default().push(name);
        self.added += 1;
        self.keep_end(name, None);
        name
    }

    pub(super) fn remove(&mut self, name: Name) -> Option<Showing> {
        let _ = self.get(name)?;
        self.unindex(name);
        let (_, showing) = self.all[name.place].take()?;
        self.vacant.push(name.place);
        if let State::Due(then) = showing.state {
            self.due.remove(&(then, name));
        }
        if let Some(ends) = showing.ends {
            self.ends.remove(&(ends, name));
        }
        let hash = self.hasher.hash_one((&*showing.address, &showing.looks));
        if let Some(names) = self.names.get_mut(&hash) {
            names.retain(|other| *other != name);
            if names.is_empty() {
                self.names.remove(&hash);
            }
        }
        Some(*showing)
    }

    /// Whether enough views were added to search for those without followers.
    pub(super) fn are_many(&self) -> bool {
        self.added >= MANY.max(self.len() / 2)
    }

    /// Updates the index of expiry times for a view that was indexed with `before`.
    pub(super) fn keep_end(&mut self, name: Name, before: Option<u64>) {
        let ends = self.get(name).and_then(|showing| showing.ends);
        if before != ends {
            before.map(|before| self.ends.remove(&(before, name)));
        }
        if let Some(ends) = ends {
            self.ends.insert((ends, name));
        }
    }

    /// Keeps a view whose clients were told to reload.
    pub(super) fn depart(&mut self, showing: Showing, now: Instant) {
        self.departed.push_back((now, showing));
    }

    /// Takes the views whose clients were told to reload at least `age` ago: each client has read
    /// it by now.
    pub(super) fn take_departed(&mut self, now: Instant, age: Duration) -> Vec<Showing> {
        let count = self.departed.partition_point(|(when, _)| now.duration_since(*when) >= age);
        self.departed.drain(..count).map(|(_, showing)| showing).collect()
    }

    /// The views without followers.
    pub(super) fn deserted(&mut self) -> Vec<Name> {
        self.added = 0;
        let all = self.all.iter().enumerate();
        let deserted = all.filter_map(|(place, own)| {
            let (number, showing) = own.as_ref()?;
            showing.is_deserted().then_some(Name { place, number: *number })
        });
        deserted.collect()
    }

    /// Marks the views that depend on these notifications and schedules them. Returns how many
    /// views were compared.
    ///
    /// The notifications so far, with these, contain all commits up to `sequence`.
    pub(super) fn heed(
        &mut self,
        news: Vec<News>,
        sequence: u64,
        now: Instant,
        second: u64,
    ) -> usize {
        let (mut commits, mut signals, mut everything) = (Vec::new(), Vec::new(), false);
        for news in news {
            match news {
                News::Commit(changes) => commits.push(changes),
                News::Signal(number) => signals.push(number),
                News::Everything => everything = true,
                News::Look => {}
            }
        }
        while let Some((ends, name)) =
            self.ends.first().copied().filter(|(ends, _)| *ends <= second)
        {
            self.ends.remove(&(ends, name));
            if let Some(showing) = self.get(name) {
                showing.ends = None;
                showing.touch_all();
            }
            self.schedule(name, now);
        }
        let compared = if everything { self.names() } else { self.touched_by(&commits, &signals) };
        for name in &compared {
            match self.get(*name) {
                Some(showing) if everything => showing.touch_all(),
                Some(showing) => showing.touch(&commits, &signals),
                None => {}
            }
            self.schedule(*name, now);
        }
        if everything {
            // The dropped notifications may have contained commits.
            self.forgotten = self.forgotten.max(sequence);
        }
        for changes in commits {
            self.recent_bytes += changes.bytes();
            self.recent.push_back(changes);
            while self.recent.len() > MOST_RECENT || self.recent_bytes > MOST_RECENT_BYTES {
                let Some(oldest) = self.recent.pop_front() else { break };
                self.recent_bytes -= oldest.bytes();
                self.forgotten = self.forgotten.max(oldest.sequence);
            }
        }
        compared.len()
    }

    fn names(&self) -> BTreeSet<Name> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(place, own)| Some(Name { place, number: own.as_ref()?.0 })).collect()
    }

    /// The views that these commits and signals may affect, with few false positives.
    fn touched_by(&self, commits: &[Arc<Changes>], signals: &[u64]) -> BTreeSet<Name> {
        let mut names = BTreeSet::new();
        for commit in commits {
            self.readers.touched(commit, |name| {
                names.insert(name);
            });
        }
        let of_signals = signals.iter().filter_map(|signal| self.signals.get(signal));
        names.extend(of_signals.flatten());
        names
    }

    /// Whether clients of this block may have one more view.
    pub(super) fn has_room(&self, block: AddressBlock) -> bool {
        self.len() < MOST && self.shares.has_room(block)
    }

    /// Adds a client of this block to a view.
    pub(super) fn welcome(&mut self, name: Name, block: AddressBlock) {
        let Some(showing) = self.get(name) else { return };
        let owner = showing.owner;
        showing.owner = owner.filter(|owner| *owner == block);
        if showing.owner != owner {
            let reads = showing.reads.len();
            self.shares.take_back(owner, reads);
            self.shares.charge(None, reads);
        }
    }

    /// Merges a render for a client that joins, which has the same number of regions.
    pub(super) fn meet(&mut self, name: Name, notes: &Notes) {
        self.unindex(name);
        if let Some(showing) = self.get(name) {
            showing.meet(notes);
        }
        self.index(name);
    }

    /// Applies a new render. Returns the regions that have changed, or `None` if the page has other
    /// regions or another scope.
    pub(super) fn follow<'n>(
        &mut self,
        name: Name,
        notes: &'n Notes,
    ) -> Option<Vec<(usize, &'n Written)>> {
        self.unindex(name);
        let changed = self.get(name).and_then(|showing| showing.follow(notes));
        self.index(name);
        changed
    }

    /// Indexes the dependencies of a view. If its block has no room for more reads, the view
    /// depends on whole tables instead.
    fn index(&mut self, name: Name) {
        let Some(Some((_, showing))) = self.all.get_mut(name.place) else { return };
        if !self.shares.has_room_for_reads(showing.owner, showing.reads.len()) {
            showing.reads.condense();
        }
        self.shares.charge(showing.owner, showing.reads.len());
        self.readers.insert(name, &showing.reads);
        for signal in showing.regions.iter().flat_map(|region| &region.signals) {
            self.signals.entry(*signal).or_default().insert(name);
        }
    }

    /// Removes the dependencies of a view from the indices.
    fn unindex(&mut self, name: Name) {
        let Some(Some((_, showing))) = self.all.get(name.place) else { return };
        self.shares.take_back(showing.owner, showing.reads.len());
        self.readers.remove(name, &showing.reads);
        for signal in showing.regions.iter().flat_map(|region| &region.signals) {
            if let Some(names) = self.signals.get_mut(signal) {
                names.remove(&name);
                if names.is_empty() {
                    self.signals.remove(signal);
                }
            }
        }
    }

    /// Schedules a render of a view if a dependency has changed.
    pub(super) fn schedule(&mut self, name: Name, now: Instant) {
        let Some(showing) = self.get(name) else { return };
        if showing.state == State::Rests && showing.is_touched() {
            let then = now.max(showing.begun + showing.pause);
            showing.state = State::Due(then);
            self.due.insert((then, name));
        }
    }

    /// Takes a view that is due; it then waits for a thread.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Name> {
        let (_, name) = self.due.first().copied().filter(|(then, _)| *then <= now)?;
        self.due.pop_first();
        self.get(name)?.state = State::Queued;
        Some(name)
    }

    /// Marks a view as rendering, with the store as of `since`.
    pub(super) fn begin_making(&mut self, name: Name, now: Instant, since: u64) {
        let Some(showing) = self.get(name) else { return };
        (showing.state, showing.begun, showing.since) = (State::Made, now, since);
        // The render may miss changes from now on.
        showing.regions.iter_mut().for_each(|region| region.is_touched = false);
    }

    /// Marks the render of a view as ended.
    pub(super) fn end_making(&mut self, name: Name) -> Option<&mut Showing> {
        let showing = self.get(name)?;
        showing.state = State::Rests;
        Some(showing)
    }

    /// Returns the time until the next view is due, if no notification arrives before.
    pub(super) fn next_due(&self, now: Instant, second: u64) -> Option<Duration> {
        let due = self.due.first().map(|(then, _)| then.saturating_duration_since(now));
        let ends = self.ends.first();
        let ends = ends.map(|(ends, _)| Duration::from_secs(ends.saturating_sub(second).max(1)));
        due.into_iter().chain(ends).min()
    }

    /// Compares a render that began at `since` with the changes since then: the server handled
    /// these before the render's dependencies were known.
    pub(super) fn check(&mut self, name: Name, notes: &Notes, since: u64, now: Instant) {
        let (recent, forgotten) = (std::mem::take(&mut self.recent), self.forgotten);
        if let Some(showing) = self.get(name) {
            if forgotten > since {
                showing.touch_all();
            }
            let late: Vec<_> = recent.iter().filter(|own| own.sequence > since).cloned().collect();
            let stale = notes.signals.iter().filter(|signal| !signal.is_current());
            let stale: Vec<u64> = stale.map(SignalRead::number).collect();
            showing.touch(&late, &stale);
        }
        self.recent = recent;
        self.schedule(name, now);
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
    showings: usize,
    reads: usize,
}

/// Views that only one address block follows. Clients on the server's own machine may have six
/// times as many, since a proxy there acts for many.
const MOST_OF_BLOCK: usize = MOST / 8;
/// Reads that are indexed for all views, some hundred bytes each. Beyond that, a view depends on
/// whole tables.
const MOST_READS: usize = 1 << 20;
/// Reads that are indexed for the views of one address block.
const MOST_READS_OF_BLOCK: usize = MOST_READS / 8;

impl Shares {
    fn has_room(&self, block: AddressBlock) -> bool {
        self.blocks.get(&block).is_none_or(|own| own.showings < MOST_OF_BLOCK * factor(block))
    }

    fn has_room_for_reads(&self, owner: Option<AddressBlock>, reads: usize) -> bool {
        let own = owner.and_then(|block| self.blocks.get(&block));
        let of_block = own.map_or(0, |own| own.reads);
        let most_of_block = owner.map_or(MOST_READS, |own| MOST_READS_OF_BLOCK * factor(own));
        self.reads + reads <= MOST_READS && of_block + reads <= most_of_block
    }

    fn charge(&mut self, owner: Option<AddressBlock>, reads: usize) {
        self.reads += reads;
        if let Some(block) = owner {
            let own = self.blocks.entry(block).or_default();
            (own.showings, own.reads) = (own.showings + 1, own.reads + reads);
        }
    }

    fn take_back(&mut self, owner: Option<AddressBlock>, reads: usize) {
        self.reads -= reads;
        let Some(block) = owner else { return };
        let Some(own) = self.blocks.get_mut(&block) else { return };
        (own.showings, own.reads) = (own.showings - 1, own.reads - reads);
        if own.showings == 0 {
            self.blocks.remove(&block);
        }
    }
}

const fn factor(block: AddressBlock) -> usize {
    if block.is_local() { 6 } else { 1 }
}

impl Showing {
    pub(super) fn new(
        address: Arc<str>,
        request: Retained,
        channel: Arc<str>,
        watches: [Arc<Watch>; 2],
        since: u64,
        now: Instant,
    ) -> Self {
        let (looks, regions, reads) = (Looks::new(), Vec::new(), ReadSet::default());
        let (ends, state) = (None, State::Rests);
        let (shows_who, owner) = (false, Some(request.incoming().peer.block()));
        Self {
            address,
            request,
            looks,
            regions,
            reads,
            watches,
            channel,
            since,
            shows_who,
            owner,
            pause: QUIET,
            ends,
            state,
            begun: now,
        }
    }

    /// Sets the view to the result of its first render.
    pub(super) fn set(&mut self, notes: &mut Notes) {
        self.looks = std::mem::take(&mut notes.looks);
        self.reads.clone_from(&notes.reads);
        (self.ends, self.shows_who) = (notes.ends, notes.here.is_some());
        self.pause = if notes.has_written { AGAIN } else { QUIET };
        self.regions = notes.regions.iter().map(|region| Shown::of(region, notes)).collect();
    }

    fn follow<'n>(&mut self, notes: &'n Notes) -> Option<Vec<(usize, &'n Written)>> {
        if self.looks != notes.looks || self.regions.len() != notes.regions.len() {
            return None;
        }
        self.reads.clone_from(&notes.reads);
        (self.ends, self.shows_who) = (notes.ends, notes.here.is_some());
        self.pause = if notes.has_written { AGAIN } else { QUIET };
        let mut changed = Vec::new();
        for (number, (own, new)) in self.regions.iter_mut().zip(&notes.regions).enumerate() {
            let Shown { hash, is_touched, .. } = *own;
            *own = Shown { is_touched, ..Shown::of(new, notes) };
            if own.hash != hash {
                changed.push((number, new));
            }
        }
        Some(changed)
    }

    /// Handles a failed render: the view retries after a longer pause, whether or not data changes.
    pub(super) fn fail(&mut self) {
        self.pause = AGAIN;
        self.touch_all();
    }

    /// Merges a render for a client that joins, which has the same number of regions. Regions that
    /// differ are sent to all clients after the next render, since the server cannot know which of
    /// the two contents is newer.
    fn meet(&mut self, notes: &Notes) {
        self.shows_who |= notes.here.is_some();
        for (own, new) in self.regions.iter_mut().zip(&notes.regions) {
            if own.hash != Some(new.hash) {
                (own.hash, own.is_touched) = (None, true);
            }
            let signals = notes.signals[..new.signals].iter().map(SignalRead::number);
            for signal in signals {
                if !own.signals.contains(&signal) {
                    own.signals.push(signal);
                }
            }
        }
    }

    pub(super) fn touch_all(&mut self) {
        self.regions.iter_mut().for_each(|region| region.is_touched = true);
    }

    fn touch(&mut self, commits: &[Arc<Changes>], signals: &[u64]) {
        let Self { regions, reads, .. } = self;
        for region in regions.iter_mut().filter(|region| !region.is_touched) {
            region.is_touched = signals.iter().any(|signal| region.signals.contains(signal))
                || commits.iter().any(|own| reads.is_touched_within(region.reads, own));
        }
    }

    fn is_touched(&self) -> bool {
        self.regions.iter().any(|region| region.is_touched)
    }

    pub(super) fn is_deserted(&self) -> bool {
        self.watches.iter().all(|watch| Arc::strong_count(watch) == 1)
    }
}

impl Shown {
    fn of(region: &Written, notes: &Notes) -> Self {
        let signals = notes.signals[..region.signals].iter().map(SignalRead::number).collect();
        Self { hash: Some(region.hash), reads: region.reads, signals, is_touched: false }
    }
}

#[cfg(test)]
mod tests;
