//! Tests of when views render again and which regions they send. The tests pass the time in.

use std::sync::Mutex;

use bine_html::RegionKey;
use bine_macros::Table;

use super::super::testing::request;
use super::*;
use crate::store::{Id, Options, Recorder, Store};
use crate::trace::RequestDependency;

#[derive(Table)]
#[table(crate = crate)]
struct Thing {
    id: Id<Thing>,
    #[table(index)]
    kind: u32,
}

/// A store, and the commits that it has reported.
struct Tables {
    store: Store,
    told: Arc<Mutex<Vec<Arc<Changes>>>>,
}

impl Tables {
    fn new() -> Self {
        let store = Store::in_memory(Options::new().table::<Thing>()).unwrap();
        let told = Arc::<Mutex<Vec<_>>>::default();
        let tell = Arc::clone(&told);
        store.observe(move |changes| tell.lock().unwrap().push(Arc::clone(changes)));
        Self { store, told }
    }

    /// Inserts a row of this kind and returns the notification of it.
    fn add(&self, kind: u32) -> News {
        self.store.insert(Thing { id: Id::new(), kind }).wait().unwrap();
        News::Commit(self.told.lock().unwrap().pop().unwrap())
    }

    fn sequence(&self) -> u64 {
        self.store.read().sequence()
    }

    /// A render of a page with one region per kind, which displays the number of rows.
    fn run(&self, kinds: &[u32]) -> Notes {
        let (recorder, mut notes) = (Recorder::default(), Notes::default());
        for kind in kinds {
            let count = recorder.scope(|| self.store.read().find(Thing::BY_KIND, *kind).count());
            let (hash, markup) = (hash_of(count), count.to_string().into_bytes().into());
            let reads = recorder.reads().len();
            notes.regions.push(Written { hash, markup, reads, signals: 0 });
        }
        notes.reads = recorder.reads();
        notes
    }
}

fn hash_of(count: usize) -> RegionHash {
    RegionHash::of(count.to_string().as_bytes(), &RegionKey::default())
}

/// A view whose first render began at `since`.
fn showing(mut notes: Notes, since: u64, now: Instant) -> Showing {
    let watches = [0, 1].map(|_| Arc::new(Watch::of(Box::default())));
    let mut own = Showing::new("http://a/".into(), request(), "page".into(), watches, since, now);
    own.set(&mut notes);
    own
}

/// Takes a view that is due and begins to render it.
fn take_due(showings: &mut Showings, now: Instant, since: u64) -> Option<Name> {
    let name = showings.take_due(now)?;
    showings.begin_making(name, now, since);
    Some(name)
}

/// Ends the render of a view and returns the regions that have changed.
fn end_making<'n>(
    showings: &mut Showings,
    name: Name,
    notes: &'n Notes,
) -> Vec<(usize, &'n Written)> {
    assert!(showings.end_making(name).is_some());
    showings.follow(name, notes).unwrap()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn one_that_has_rested_is_made_at_once_and_again_after_a_while() {
    let (tables, start) = (Tables::new(), Instant::now());
    let mut showings = Showings::default();
    let name = showings.add(showing(tables.run(&[1]), tables.sequence(), start));
    showings.heed(vec![tables.add(2)], tables.sequence(), start, 0);
    assert_eq!(showings.next_due(start, 0), None, "of another kind");
    let now = start + SECOND;
    showings.heed(vec![tables.add(1)], tables.sequence(), now, 0);
    assert_eq!(showings.next_due(now, 0), Some(Duration::ZERO));
    let since = tables.sequence();
    assert_eq!(take_due(&mut showings, now, since), Some(name));
    // Several changes during a render cause one further render.
    let notes = tables.run(&[1]);
    let news = vec![tables.add(1), tables.add(1)];
    showings.heed(news, tables.sequence(), now, 0);
    assert_eq!(take_due(&mut showings, now, since), None);
    let changed = end_making(&mut showings, name, &notes);
    assert_eq!(
        changed.iter().map(|(number, own)| (*number, own.hash)).collect::<Vec<_>>(),
        [(0, hash_of(1))]
    );
    showings.check(name, &notes, since, now);
    assert_eq!(showings.next_due(now, 0), Some(QUIET));
    assert_eq!(take_due(&mut showings, now, since), None);
    assert_eq!(take_due(&mut showings, now + QUIET, tables.sequence()), Some(name));
    let notes = tables.run(&[1]);
    assert_eq!(end_making(&mut showings, name, &notes).len(), 1);
    showings.check(name, &notes, tables.sequence(), now + QUIET);
    assert_eq!(showings.next_due(now, 0), None);
}

#[test]
fn a_region_depends_on_what_was_read_before_it_and_on_nothing_behind_it() {
    for (kind, is_due) in [(1, true), (2, true), (3, false)] {
        let (tables, now) = (Tables::new(), Instant::now());
        let mut showings = Showings::default();
        let mut notes = tables.run(&[1, 2, 3]);
        // The reads of the first and the last kind are outside of any region.
        notes.regions.remove(0);
        notes.regions.pop();
        showings.add(showing(notes, tables.sequence(), now));
        showings.heed(vec![tables.add(kind)], tables.sequence(), now, 0);
        assert_eq!(showings.next_due(now, 0).is_some(), is_due, "{kind}");
    }
}

#[test]
fn what_was_told_before_it_was_known_who_depends_on_it_is_not_missed() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut showings = Showings::default();
    let (since, notes) = (tables.sequence(), tables.run(&[1]));
    showings.heed(vec![tables.add(1)], tables.sequence(), now, 0);
    let name = showings.add(showing(tables.run(&[1]), since, now));
    showings.check(name, &notes, tables.sequence(), now);
    assert_eq!(showings.next_due(now, 0), None, "the run has seen it");
    showings.check(name, &notes, since, now);
    assert!(showings.next_due(now, 0).is_some());
}

#[test]
fn what_is_forgotten_may_have_been_anything() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut showings = Showings::default();
    let (since, notes) = (tables.sequence(), tables.run(&[1]));
    for _ in 0..=MOST_RECENT {
        showings.heed(vec![tables.add(2)], tables.sequence(), now, 0);
    }
    let name = showings.add(showing(tables.run(&[1]), since, now));
    showings.check(name, &notes, since + 1, now);
    assert_eq!(showings.next_due(now, 0), None, "no more is forgotten than that");
    showings.check(name, &notes, since, now);
    assert!(showings.next_due(now, 0).is_some());
}

#[test]
fn what_was_looked_at_ends_by_itself_and_is_made_again_then() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut showings = Showings::default();
    let notes = Notes { ends: Some(100), ..tables.run(&[1]) };
    let name = showings.add(showing(notes, tables.sequence(), now));
    assert_eq!(showings.next_due(now, 90), Some(10 * SECOND));
    showings.heed(Vec::new(), tables.sequence(), now, 99);
    assert_eq!(take_due(&mut showings, now + SECOND, 0), None);
    showings.heed(Vec::new(), tables.sequence(), now, 100);
    assert_eq!(take_due(&mut showings, now + SECOND, 0), Some(name));
    // The next render sets a new expiry time.
    let notes = Notes { ends: Some(200), ..tables.run(&[1]) };
    let before = showings.get(name).unwrap().ends;
    assert!(end_making(&mut showings, name, &notes).is_empty());
    showings.keep_end(name, before);
    assert_eq!(showings.next_due(now, 100), Some(100 * SECOND));
    drop(showings.remove(name));
    assert_eq!(showings.next_due(now, 100), None);
}

/// Regression: a client joined with content that existed for a moment only. The next render was
/// equal to what all other clients had, so the server sent no patch, and the new client kept the
/// old content.
#[test]
fn who_joins_with_another_state_is_sent_what_there_is_though_it_is_nothing_new() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut showings = Showings::default();
    let name = showings.add(showing(tables.run(&[1, 2]), tables.sequence(), now));
    let old = tables.run(&[1, 2]);
    tables.add(2);
    showings.meet(name, &tables.run(&[1, 2]));
    showings.schedule(name, now);
    assert_eq!(take_due(&mut showings, now + QUIET, tables.sequence()), Some(name));
    let changed = end_making(&mut showings, name, &old);
    assert_eq!(changed.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_page_with_other_regions_or_for_others_is_another() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut own = showing(tables.run(&[1]), tables.sequence(), now);
    assert!(own.follow(&tables.run(&[1, 2])).is_none());
    assert!(own.follow(&tables.run(&[])).is_none());
    let looks = vec![(RequestDependency::User, Box::from(*b"ann"))];
    assert!(own.follow(&Notes { looks, ..tables.run(&[1]) }).is_none());
    assert!(own.follow(&tables.run(&[1])).unwrap().is_empty());
}

#[test]
fn each_scope_has_a_showing_of_its_own_and_names_are_not_given_twice() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut showings = Showings::default();
    let of = |user: &str| {
        let looks = vec![(RequestDependency::User, Box::from(user.as_bytes()))];
        showing(Notes { looks, ..tables.run(&[1]) }, tables.sequence(), now)
    };
    let [ann, ben] = ["ann", "ben"].map(|user| showings.add(of(user)));
    let find = |showings: &mut Showings, user: &str| {
        showings.find("http://a/", &vec![(RequestDependency::User, Box::from(user.as_bytes()))])
    };
    assert_eq!(find(&mut showings, "ann"), Some(ann));
    assert_eq!(find(&mut showings, "ben"), Some(ben));
    assert_eq!(showings.settled("http://a/"), None);
    assert!(showings.remove(ann).is_some() && showings.remove(ann).is_none());
    assert_eq!(find(&mut showings, "ann"), None);
    let again = showings.add(of("ann"));
    assert_ne!(again, ann);
    assert!(showings.get(ann).is_none());
    assert_eq!(showings.deserted().len(), 2, "nobody looks at any");
    let _looks = Arc::clone(&showings.get(again).unwrap().watches[1]);
    assert_eq!(showings.deserted(), [ben]);
}

/// Regression: the server compared each commit with all views, under one lock.
#[test]
fn compares_a_commit_with_the_showings_that_read_what_it_changes_only() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut showings = Showings::default();
    let names: Vec<Name> = (0..500)
        .map(|kind| showings.add(showing(tables.run(&[kind]), tables.sequence(), now)))
        .collect();
    let commit = tables.add(7);
    assert_eq!(showings.heed(vec![commit], tables.sequence(), now, 0), 1);
    assert_eq!(showings.take_due(now + QUIET), Some(names[7]));
    assert_eq!(showings.take_due(now + QUIET), None);
    // The view depends on another kind from now on.
    showings.begin_making(names[7], now, tables.sequence());
    end_making(&mut showings, names[7], &tables.run(&[1000]));
    let commit = tables.add(7);
    assert_eq!(showings.heed(vec![commit], tables.sequence(), now, 0), 0);
    let commit = tables.add(1000);
    assert_eq!(showings.heed(vec![commit], tables.sequence(), now, 0), 1);
    drop(showings.remove(names[8]));
    let commit = tables.add(8);
    assert_eq!(showings.heed(vec![commit], tables.sequence(), now, 0), 0);
    let all = vec![News::Everything];
    assert_eq!(showings.heed(all, tables.sequence(), now, 0), 499);
}

/// Regression: the server compared each signal with all views.
#[test]
fn compares_a_signal_with_the_showings_that_show_it_only() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut showings = Showings::default();
    let of = |signal: u64| {
        let mut own = showing(tables.run(&[1]), tables.sequence(), now);
        own.regions[0].signals = vec![signal];
        own
    };
    let names: Vec<Name> = (0..100).map(|signal| showings.add(of(signal))).collect();
    assert_eq!(showings.heed(vec![News::Signal(3)], 0, now, 0), 1);
    assert_eq!(showings.take_due(now + QUIET), Some(names[3]));
}

/// Bounds the memory that the pages of one block can take.
#[test]
fn depends_on_whole_tables_when_its_block_has_read_as_much_as_it_may() {
    let block = AddressBlock::of([192, 0, 2, 1].into());
    let mut shares = Shares::default();
    shares.charge(Some(block), MOST_READS_OF_BLOCK - 1);
    assert!(shares.has_room_for_reads(Some(block), 1));
    assert!(!shares.has_room_for_reads(Some(block), 2));
    assert!(shares.has_room_for_reads(Some(AddressBlock::LOCAL), 2));
    shares.take_back(Some(block), MOST_READS_OF_BLOCK - 1);
    assert!(shares.has_room_for_reads(Some(block), 2) && shares.blocks.is_empty());
}

#[test]
fn bounds_the_showings_of_one_block_until_others_follow_them() {
    let block = AddressBlock::of([192, 0, 2, 1].into());
    let (tables, now) = (Tables::new(), Instant::now());
    let mut showings = Showings::default();
    let mut own = showing(tables.run(&[1]), tables.sequence(), now);
    own.owner = Some(block);
    let name = showings.add(own);
    (1..MOST_OF_BLOCK).for_each(|_| showings.shares.charge(Some(block), 0));
    assert!(!showings.has_room(block) && showings.has_room(AddressBlock::LOCAL));
    showings.welcome(name, AddressBlock::LOCAL);
    assert!(showings.has_room(block));
    drop(showings.remove(name));
    assert_eq!(showings.shares.reads, 0);
}
