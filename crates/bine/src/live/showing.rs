//! Decides when a page that others look at is made again, and what of it they are sent: one showing is one page as all of
//! one scope see it, and is made once for all of them.

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

/// A page as all of one scope see it.
pub(super) struct Showing {
    /// Host and target: what all who look at this page have asked for.
    pub(super) address: Arc<str>,
    /// Asked for again when it is made again.
    pub(super) request: Retained,
    /// What a run of it looks at of its visitor, and sees: for whoever sees the same, the page is the same.
    pub(super) looks: Looks,
    pub(super) regions: Vec<Shown>,
    /// What the run has read of the tables.
    reads: ReadSet,
    /// How it is followed, by events and by polls: as many have it as look at the page, and this showing.
    pub(super) watches: [Arc<Watch>; 2],
    /// In which its patches are published.
    pub(super) channel: Arc<str>,
    /// The store's sequence when it was last begun to be made.
    pub(super) since: u64,
    /// It shows who is there.
    pub(super) shows_who: bool,
    /// The only address block whose clients have come to follow it; `None`: there were several.
    pub(super) owner: Option<AddressBlock>,
    /// It is begun again at most so often.
    pause: Duration,
    /// When what was seen ends by itself, in seconds since 1970.
    pub(super) ends: Option<u64>,
    state: State,
    /// When it was last begun to be made.
    begun: Instant,
}

/// A region as everybody has got it.
pub(super) struct Shown {
    /// `None`: it is not known that all have the same.
    pub(super) hash: Option<RegionHash>,
    /// So many of the run's reads.
    reads: usize,
    /// The numbers of the signals that it shows.
    signals: Vec<u64>,
    /// Something has changed that it depends on.
    is_touched: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing has changed.
    Rests,
    /// It is made again then.
    Due(Instant),
    /// It waits for its turn to be made again.
    Queued,
    /// It is being made.
    Made,
}

/// Names a showing: one that comes in its place has another number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Name {
    place: usize,
    number: u64,
}

/// All pages that somebody looks at.
#[derive(Default)]
pub(super) struct Showings {
    all: Vec<Option<(u64, Box<Showing>)>>,
    vacant: Vec<usize>,
    /// By the hashes of what they show to whom.
    names: HashMap<u64, Vec<Name>>,
    hasher: RandomState,
    due: BTreeSet<(Instant, Name)>,
    /// When what showings have looked at ends by itself, in seconds since 1970.
    ends: BTreeSet<(u64, Name)>,
    /// Showings that came since it was looked which of them are deserted.
    added: usize,
    /// Those of whom all were sent away, and when, the first at the front.
    departed: VecDeque<(Instant, Showing)>,
    next_number: u64,
    /// What each showing has read of the tables.
    readers: Readers<Name>,
    /// Which showings show a signal, by its number.
    signals: HashMap<u64, BTreeSet<Name>>,
    shares: Shares,
    /// Commits of late, of which showings that were being made then did not know yet that they depend on them.
    recent: VecDeque<Arc<Changes>>,
    /// Bytes of them.
    recent_bytes: usize,
    /// Up to here they are forgotten.
    forgotten: u64,
}

/// A showing is begun again at most so often: newer changes take the place of those that were not shown.
pub(super) const QUIET: Duration = Duration::from_millis(40);
/// One that could not be made is tried again after this, and one that changes tables while it is made.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// Pages that are looked at in all scopes.
const MOST: usize = 100_000;
const MOST_RECENT: usize = 1024;
const MOST_RECENT_BYTES: usize = 4 << 20;
/// It is looked which showings are deserted when so many have come, or half as many as there are.
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

    /// The showing of an address for those of whom is seen what `looks` says.
    pub(super) fn find(&mut self, address: &str, looks: &Looks) -> Option<Name> {
        let names = self.names.get(&self.hasher.hash_one((address, looks)))?.clone();
        names.into_iter().find(|name| {
            self.get(*name).is_some_and(|own| *own.address == *address && own.looks == *looks)
        })
    }

    /// The one for everybody, if there is one that is as it should be.
    pub(super) fn settled(&mut self, address: &str) -> Option<Name> {
        let name = self.find(address, &Looks::new())?;
        self.get(name).filter(|showing| showing.state == State::Rests)?;
        Some(name)
    }

    /// A number for the next showing's channel.
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

    /// Whether so many have come that it is worth to look which are deserted.
    pub(super) fn are_many(&self) -> bool {
        self.added >= MANY.max(self.len() / 2)
    }

    /// Knows when what a showing has looked at ends, which it thought would be `before`.
    pub(super) fn keep_end(&mut self, name: Name, before: Option<u64>) {
        let ends = self.get(name).and_then(|showing| showing.ends);
        if before != ends {
            before.map(|before| self.ends.remove(&(before, name)));
        }
        if let Some(ends) = ends {
            self.ends.insert((ends, name));
        }
    }

    /// All who look at this one were sent away.
    pub(super) fn depart(&mut self, showing: Showing, now: Instant) {
        self.departed.push_back((now, showing));
    }

    /// Those who were sent away so long ago: all have read it that will.
    pub(super) fn take_departed(&mut self, now: Instant, age: Duration) -> Vec<Showing> {
        let count = self.departed.partition_point(|(when, _)| now.duration_since(*when) >= age);
        self.departed.drain(..count).map(|(_, showing)| showing).collect()
    }

    /// Those at which nobody looks any more.
    pub(super) fn deserted(&mut self) -> Vec<Name> {
        self.added = 0;
        let all = self.all.iter().enumerate();
        let deserted = all.filter_map(|(place, own)| {
            let (number, showing) = own.as_ref()?;
            showing.is_deserted().then_some(Name { place, number: *number })
        });
        deserted.collect()
    }

    /// Notes what has changed. What depends on it will be made again. Returns how many showings were compared with it.
    ///
    /// All commits up to `sequence` of the store are among it or among what was told before.
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
            // There may have been commits among what was not told.
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

    /// The showings that these commits and signals may touch, and few others.
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

    /// Whether clients of this block may have one showing more.
    pub(super) fn has_room(&self, block: AddressBlock) -> bool {
        self.len() < MOST && self.shares.has_room(block)
    }

    /// A client of this block comes to follow a showing.
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

    /// Somebody joins a showing for whom another run was made, of as many regions.
    pub(super) fn meet(&mut self, name: Name, notes: &Notes) {
        self.unindex(name);
        if let Some(showing) = self.get(name) {
            showing.meet(notes);
        }
        self.index(name);
    }

    /// What is to be sent after another run of a showing: the regions that have changed. `None`: the page is another.
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

    /// Notes what a showing depends on. If its block depends on as much as it may already, it depends on whole tables.
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

    /// Forgets what a showing depends on.
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

    /// Has a showing made again when it may be, if something has changed.
    pub(super) fn schedule(&mut self, name: Name, now: Instant) {
        let Some(showing) = self.get(name) else { return };
        if showing.state == State::Rests && showing.is_touched() {
            let then = now.max(showing.begun + showing.pause);
            showing.state = State::Due(then);
            self.due.insert((then, name));
        }
    }

    /// Takes one that is due, which waits for its turn from here on.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Name> {
        let (_, name) = self.due.first().copied().filter(|(then, _)| *then <= now)?;
        self.due.pop_first();
        self.get(name)?.state = State::Queued;
        Some(name)
    }

    /// One that waited for its turn is being made from here on, with the store as it is at `since`.
    pub(super) fn begin_making(&mut self, name: Name, now: Instant, since: u64) {
        let Some(showing) = self.get(name) else { return };
        (showing.state, showing.begun, showing.since) = (State::Made, now, since);
        // What changes from here on, it may not see.
        showing.regions.iter_mut().for_each(|region| region.is_touched = false);
    }

    /// One that was being made is not any more.
    pub(super) fn end_making(&mut self, name: Name) -> Option<&mut Showing> {
        let showing = self.get(name)?;
        showing.state = State::Rests;
        Some(showing)
    }

    /// When the next is due, if nothing happens before.
    pub(super) fn next_due(&self, now: Instant, second: u64) -> Option<Duration> {
        let due = self.due.first().map(|(then, _)| then.saturating_duration_since(now));
        let ends = self.ends.first();
        let ends = ends.map(|(ends, _)| Duration::from_secs(ends.saturating_sub(second).max(1)));
        due.into_iter().chain(ends).min()
    }

    /// Has a showing made again if something has changed that a run of it has looked at which began at `since`: changes
    /// that were told of before it was known that it depends on them.
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

/// How many showings clients of one address block have, and how much these have read.
#[derive(Default)]
struct Shares {
    blocks: BTreeMap<AddressBlock, Share>,
    /// Looks at tables of all showings.
    reads: usize,
}

#[derive(Default)]
struct Share {
    showings: usize,
    reads: usize,
}

/// Showings that clients of one address block alone follow. Clients of the server's own machine may have
/// six times as many: a proxy there speaks for all.
const MOST_OF_BLOCK: usize = MOST / 8;
/// Looks at tables that are remembered of all showings, some hundred bytes each. Beyond that a showing depends on whole
/// tables.
const MOST_READS: usize = 1 << 20;
/// The same of the showings of one address block.
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

    /// It is what a run has made of it.
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

    /// It could not be made: it rests for longer, and is made then whatever changes.
    pub(super) fn fail(&mut self) {
        self.pause = AGAIN;
        self.touch_all();
    }

    /// Somebody joins for whom another run was made, of as many regions. Where that is another than all have, all are
    /// sent what it is from now on, since nobody knows which of the two is newer.
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
