//! Decides when a page that others look at is made again, and what of it they are sent: one showing is one page as all of
//! one scope see it, and is made once for all of them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bine_pipeline::Retained;

use super::mailbox::News;
use super::run::{Looks, Notes, Written};
use crate::channels::Watch;
use crate::store::{Changes, ReadSet};

/// A page as all of one scope see it.
pub(super) struct Showing {
    /// Host and target: what all who look at this page have asked for.
    pub(super) address: Arc<str>,
    /// Asked for again when it is made again.
    pub(super) request: Retained,
    /// What a run of it looks at of its visitor, and sees: for whoever sees the same, the page is the same.
    pub(super) looks: Looks,
    pub(super) regions: Vec<Shown>,
    /// How it is followed, by events and by polls: as many have it as look at the page, and this showing.
    pub(super) watches: [Arc<Watch>; 2],
    /// In which its patches are published.
    pub(super) channel: Arc<str>,
    /// The store's sequence when it was last begun to be made.
    pub(super) since: u64,
    /// It shows who is there.
    pub(super) shows_who: bool,
    /// When what was seen ends by itself, in seconds since 1970.
    ends: Option<u64>,
    state: State,
    /// When it was last begun to be made.
    begun: Instant,
}

/// A region as everybody has got it.
pub(super) struct Shown {
    pub(super) hash: u64,
    reads: ReadSet,
    /// The numbers of the signals that it shows.
    signals: Box<[u64]>,
    /// Something has changed that it depends on.
    is_touched: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing has changed.
    Rests,
    /// It is made again then.
    Due(Instant),
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
    /// Showings that are being made.
    under_way: usize,
    next_number: u64,
    /// Commits of late, of which showings that were being made then did not know yet that they depend on them.
    recent: VecDeque<Changes>,
    /// Up to here they are forgotten.
    forgotten: u64,
}

/// A showing is begun again at most so often: newer changes take the place of those that were not shown.
const QUIET: Duration = Duration::from_millis(40);
/// One that could not be made is tried again after this.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// At one time.
const MOST_UNDER_WAY: usize = 64;
/// Pages that are looked at in all scopes.
pub(super) const MOST: usize = 100_000;
const MOST_RECENT: usize = 1024;

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
        self.names.entry(hash).or_default().push(name);
        name
    }

    pub(super) fn remove(&mut self, name: Name) -> Option<Showing> {
        let _ = self.get(name)?;
        let (_, showing) = self.all[name.place].take()?;
        self.vacant.push(name.place);
        if let State::Due(then) = showing.state {
            self.due.remove(&(then, name));
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

    /// Those at which nobody looks any more.
    pub(super) fn deserted(&self) -> Vec<Name> {
        let all = self.all.iter().enumerate();
        let deserted = all.filter_map(|(place, own)| {
            let (number, showing) = own.as_ref()?;
            showing.is_deserted().then_some(Name { place, number: *number })
        });
        deserted.collect()
    }

    /// Notes what has changed. What depends on it will be made again.
    ///
    /// All commits up to `sequence` of the store are among it or among what was told before.
    pub(super) fn heed(&mut self, news: Vec<News>, sequence: u64, now: Instant, second: u64) {
        let (mut commits, mut signals, mut everything) = (Vec::new(), Vec::new(), false);
        for news in news {
            match news {
                News::Commit(changes) => commits.push(changes),
                News::Signal(number) => signals.push(number),
                News::Everything => everything = true,
                News::Look => {}
            }
        }
        for place in 0..self.all.len() {
            let Some((number, showing)) = &mut self.all[place] else { continue };
            if everything || showing.has_ended(second) {
                showing.touch_all();
            } else {
                showing.touch(&commits, &signals);
            }
            let name = Name { place, number: *number };
            self.schedule(name, now, QUIET);
        }
        if everything {
            // There may have been commits among what was not told.
            self.forgotten = self.forgotten.max(sequence);
        }
        for changes in commits {
            if self.recent.len() == MOST_RECENT
                && let Some(oldest) = self.recent.pop_front()
            {
                self.forgotten = self.forgotten.max(oldest.sequence);
            }
            self.recent.push_back(changes);
        }
    }

    /// Has a showing made again when it may be, if something has changed.
    pub(super) fn schedule(&mut self, name: Name, now: Instant, pause: Duration) {
        let Some(showing) = self.get(name) else { return };
        if showing.state == State::Rests && showing.is_touched() {
            let then = now.max(showing.begun + pause);
            showing.state = State::Due(then);
            self.due.insert((then, name));
        }
    }

    /// Takes one that is due, and is being made from here on.
    pub(super) fn take_due(&mut self, now: Instant, since: u64) -> Option<Name> {
        let (then, name) = *self.due.first()?;
        if then > now || self.under_way >= MOST_UNDER_WAY {
            return None;
        }
        self.due.remove(&(then, name));
        self.under_way += 1;
        let showing = self.get(name)?;
        (showing.state, showing.begun, showing.since) = (State::Made, now, since);
        // What changes from here on, it may not see.
        showing.regions.iter_mut().for_each(|region| region.is_touched = false);
        Some(name)
    }

    /// One that was being made is not any more.
    pub(super) fn end_making(&mut self, name: Name) -> Option<&mut Showing> {
        self.under_way -= 1;
        let showing = self.get(name)?;
        showing.state = State::Rests;
        Some(showing)
    }

    /// When the next is due, if nothing happens before.
    pub(super) fn next_due(&self, now: Instant) -> Option<Duration> {
        let (then, _) = self.due.first()?;
        // Whoever is made now tells when it is.
        (self.under_way < MOST_UNDER_WAY).then(|| then.saturating_duration_since(now))
    }

    /// Has a showing made again if something has changed since the run that it is of: commits that it did not know that it
    /// depends on when they were told of.
    pub(super) fn check(&mut self, name: Name, notes: &Notes, now: Instant) {
        let (recent, forgotten) = (std::mem::take(&mut self.recent), self.forgotten);
        if let Some(showing) = self.get(name) {
            let since = showing.since;
            if forgotten > since {
                showing.touch_all();
            }
            let late: Vec<&Changes> = recent.iter().filter(|own| own.sequence > since).collect();
            showing.touch(late, &[]);
            let stale = notes.signals.iter().filter(|signal| !signal.is_current());
            let stale: Vec<u64> = stale.map(super::signal::Watched::number).collect();
            showing.touch([], &stale);
        }
        self.recent = recent;
        self.schedule(name, now, QUIET);
    }
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
        let (looks, regions, ends, state) = (Looks::new(), Vec::new(), None, State::Rests);
        let shows_who = false;
        Self {
            address,
            request,
            looks,
            regions,
            watches,
            channel,
            since,
            shows_who,
            ends,
            state,
            begun: now,
        }
    }

    /// It is what a run has made of it.
    pub(super) fn set(&mut self, notes: &mut Notes) {
        self.looks = std::mem::take(&mut notes.looks);
        (self.ends, self.shows_who) = (notes.ends, notes.shows_who);
        self.regions = notes.regions.iter().map(|region| Shown::of(region, notes)).collect();
    }

    /// What is to be sent after another run of it: the regions that have changed. `None`: the page is another.
    pub(super) fn follow<'n>(&mut self, notes: &'n Notes) -> Option<Vec<(usize, &'n Written)>> {
        if self.looks != notes.looks || self.regions.len() != notes.regions.len() {
            return None;
        }
        (self.ends, self.shows_who) = (notes.ends, notes.shows_who);
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

    /// Takes what another run depends on that was made for somebody. Where that is another, all are to see it.
    pub(super) fn refresh(&mut self, notes: &Notes) {
        if self.regions.len() != notes.regions.len() {
            return self.touch_all();
        }
        self.shows_who |= notes.shows_who;
        for (own, new) in self.regions.iter_mut().zip(&notes.regions) {
            let (hash, is_touched) = (own.hash, own.is_touched || own.hash != new.hash);
            *own = Shown { hash, is_touched, ..Shown::of(new, notes) };
        }
    }

    /// What all have is not known any more: they get it when it is made again, whatever it is.
    pub(super) fn forget(&mut self) {
        self.regions.iter_mut().for_each(|region| region.hash = 0);
        self.touch_all();
    }

    pub(super) fn touch_all(&mut self) {
        self.regions.iter_mut().for_each(|region| region.is_touched = true);
    }

    fn touch<'c>(&mut self, commits: impl IntoIterator<Item = &'c Changes>, signals: &[u64]) {
        let commits: Vec<&Changes> = commits.into_iter().collect();
        for region in self.regions.iter_mut().filter(|region| !region.is_touched) {
            region.is_touched = signals.iter().any(|signal| region.signals.contains(signal))
                || commits.iter().any(|changes| region.reads.is_touched_by(changes));
        }
    }

    fn is_touched(&self) -> bool {
        self.regions.iter().any(|region| region.is_touched)
    }

    fn has_ended(&self, second: u64) -> bool {
        self.ends.is_some_and(|ends| ends <= second)
    }

    pub(super) fn is_deserted(&self) -> bool {
        self.watches.iter().all(|watch| Arc::strong_count(watch) == 1)
    }
}

impl Shown {
    fn of(region: &Written, notes: &Notes) -> Self {
        let signals = notes.signals[..region.signals].iter();
        let signals = signals.map(super::signal::Watched::number).collect();
        Self { hash: region.hash, reads: region.reads.clone(), signals, is_touched: false }
    }
}
