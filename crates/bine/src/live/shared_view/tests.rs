//! Tests of when views render again and which regions they send. The tests pass the time in.

use std::sync::Mutex;

use bine_html::RegionKey;
use bine_macros::Table;

use super::super::pace::MIN_INTERVAL;
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
    commits: Arc<Mutex<Vec<Arc<Changes>>>>,
}

impl Tables {
    fn new() -> Self {
        let store = Store::in_memory(Options::new().table::<Thing>()).unwrap();
        let commits = Arc::<Mutex<Vec<_>>>::default();
        let sink = Arc::clone(&commits);
        store.observe(move |changes| sink.lock().unwrap().push(Arc::clone(changes)));
        Self { store, commits }
    }

    /// Inserts a row of this kind and returns its notification.
    fn add(&self, kind: u32) -> Notification {
        self.store.insert(Thing { id: Id::unassigned(), kind }).wait().unwrap();
        Notification::Commit(self.commits.lock().unwrap().pop().unwrap())
    }

    fn sequence(&self) -> u64 {
        self.store.read().sequence()
    }

    /// A render of a page with one region per kind, which displays the number of rows.
    fn run(&self, kinds: &[u32]) -> RenderRecord {
        let (recorder, mut record) = (Recorder::default(), RenderRecord::default());
        for kind in kinds {
            let count = recorder.scope(|| self.store.read().find(Thing::BY_KIND, *kind).count());
            let (hash, markup) = (hash_of(count), count.to_string().into_bytes().into());
            let reads = recorder.reads().len();
            record.regions.push(RenderedRegion { hash, markup, reads, signals: 0 });
        }
        record.reads = recorder.reads();
        record
    }
}

fn hash_of(count: usize) -> RegionHash {
    RegionHash::of(count.to_string().as_bytes(), &RegionKey::default())
}

/// A view whose first render began at `since`.
fn view(mut record: RenderRecord, since: u64, now: Instant) -> SharedView {
    let watches = [0, 1].map(|_| Arc::new(SubscriptionSpec::of(Box::default())));
    let mut own =
        SharedView::new("http://a/".into(), request(), "page".into(), watches, since, now);
    own.set(&mut record);
    own
}

/// Takes a view that is due and begins to render it.
fn take_due(views: &mut SharedViews, now: Instant, since: u64) -> Option<ViewId> {
    let id = views.take_due(now)?;
    views.begin_render(id, now, since);
    Some(id)
}

/// Ends the render of a view and returns the regions that have changed.
fn end_render<'n>(
    views: &mut SharedViews,
    id: ViewId,
    record: &'n RenderRecord,
) -> Vec<(usize, &'n RenderedRegion)> {
    assert!(views.end_render(id).is_some());
    views.follow(id, record).unwrap()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn renders_again_at_once_until_a_burst_is_used_up() {
    let (tables, start) = (Tables::new(), Instant::now());
    let mut views = SharedViews::default();
    let id = views.add(view(tables.run(&[1]), tables.sequence(), start));
    views.handle(vec![tables.add(2)], tables.sequence(), start, 0);
    assert_eq!(views.next_due(start, 0), None, "of another kind");
    let now = start + SECOND;
    views.handle(vec![tables.add(1)], tables.sequence(), now, 0);
    assert_eq!(views.next_due(now, 0), Some(Duration::ZERO));
    let since = tables.sequence();
    assert_eq!(take_due(&mut views, now, since), Some(id));
    // Several changes during a render cause one further render.
    let record = tables.run(&[1]);
    let notifications = vec![tables.add(1), tables.add(1)];
    views.handle(notifications, tables.sequence(), now, 0);
    assert_eq!(take_due(&mut views, now, since), None);
    let changed = end_render(&mut views, id, &record);
    assert_eq!(
        changed.iter().map(|(number, own)| (*number, own.hash)).collect::<Vec<_>>(),
        [(0, hash_of(1))]
    );
    views.catch_up(id, &record, since, now);
    let mut renders = 1;
    while take_due(&mut views, now, tables.sequence()).is_some() {
        let record = tables.run(&[1]);
        assert_eq!(end_render(&mut views, id, &record).len(), 1);
        views.handle(vec![tables.add(1)], tables.sequence(), now, 0);
        views.catch_up(id, &record, tables.sequence(), now);
        renders += 1;
        assert!(renders < 100);
    }
    assert_eq!(renders, 8, "with the first");
    assert_eq!(views.next_due(now, 0), Some(MIN_INTERVAL));
    let later = now + MIN_INTERVAL;
    assert_eq!(take_due(&mut views, later, tables.sequence()), Some(id));
    let record = tables.run(&[1]);
    assert_eq!(end_render(&mut views, id, &record).len(), 1);
    views.catch_up(id, &record, tables.sequence(), later);
    assert_eq!(views.next_due(later, 0), None);
}

#[test]
fn region_depends_on_reads_before_its_end_only() {
    for (kind, is_due) in [(1, true), (2, true), (3, false)] {
        let (tables, now) = (Tables::new(), Instant::now());
        let mut views = SharedViews::default();
        let mut record = tables.run(&[1, 2, 3]);
        // The reads of the first and the last kind are outside of any region.
        record.regions.remove(0);
        record.regions.pop();
        views.add(view(record, tables.sequence(), now));
        views.handle(vec![tables.add(kind)], tables.sequence(), now, 0);
        assert_eq!(views.next_due(now, 0).is_some(), is_due, "{kind}");
    }
}

#[test]
fn catches_up_with_changes_during_first_render() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut views = SharedViews::default();
    let (since, record) = (tables.sequence(), tables.run(&[1]));
    views.handle(vec![tables.add(1)], tables.sequence(), now, 0);
    let id = views.add(view(tables.run(&[1]), since, now));
    views.catch_up(id, &record, tables.sequence(), now);
    assert_eq!(views.next_due(now, 0), None, "the run has seen it");
    views.catch_up(id, &record, since, now);
    assert!(views.next_due(now, 0).is_some());
}

#[test]
fn renders_again_if_recent_changes_were_dropped() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut views = SharedViews::default();
    let (since, record) = (tables.sequence(), tables.run(&[1]));
    for _ in 0..=MAX_RECENT {
        views.handle(vec![tables.add(2)], tables.sequence(), now, 0);
    }
    let id = views.add(view(tables.run(&[1]), since, now));
    views.catch_up(id, &record, since + 1, now);
    assert_eq!(views.next_due(now, 0), None, "no more is forgotten than that");
    views.catch_up(id, &record, since, now);
    assert!(views.next_due(now, 0).is_some());
}

#[test]
fn renders_again_when_read_data_expires() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut views = SharedViews::default();
    let record = RenderRecord { expires_at: Some(100), ..tables.run(&[1]) };
    let id = views.add(view(record, tables.sequence(), now));
    assert_eq!(views.next_due(now, 90), Some(10 * SECOND));
    views.handle(Vec::new(), tables.sequence(), now, 99);
    assert_eq!(take_due(&mut views, now + SECOND, 0), None);
    views.handle(Vec::new(), tables.sequence(), now, 100);
    assert_eq!(take_due(&mut views, now + SECOND, 0), Some(id));
    // The next render sets a new expiry time.
    let record = RenderRecord { expires_at: Some(200), ..tables.run(&[1]) };
    let before = views.get(id).unwrap().expires_at;
    assert!(end_render(&mut views, id, &record).is_empty());
    views.index_expiry(id, before);
    assert_eq!(views.next_due(now, 100), Some(100 * SECOND));
    drop(views.remove(id));
    assert_eq!(views.next_due(now, 100), None);
}

/// Regression: a client joined with content that existed for a moment only. The next render was
/// equal to what all other clients had, so the server sent no patch, and the new client kept the
/// old content.
#[test]
fn resends_regions_that_differ_for_joining_client() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut views = SharedViews::default();
    let id = views.add(view(tables.run(&[1, 2]), tables.sequence(), now));
    let old = tables.run(&[1, 2]);
    tables.add(2);
    views.merge_join(id, &tables.run(&[1, 2]));
    views.schedule(id, now);
    assert_eq!(take_due(&mut views, now + MIN_INTERVAL, tables.sequence()), Some(id));
    let changed = end_render(&mut views, id, &old);
    assert_eq!(changed.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1]);
}

#[test]
fn rejects_render_with_other_regions_or_scope() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut own = view(tables.run(&[1]), tables.sequence(), now);
    assert!(own.follow(&tables.run(&[1, 2])).is_none());
    assert!(own.follow(&tables.run(&[])).is_none());
    let scope = vec![(RequestDependency::User, Box::from(*b"ann"))];
    assert!(own.follow(&RenderRecord { scope, ..tables.run(&[1]) }).is_none());
    assert!(own.follow(&tables.run(&[1])).unwrap().is_empty());
}

#[test]
fn keeps_one_view_per_scope_and_reuses_no_id() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut views = SharedViews::default();
    let of = |user: &str| {
        let scope = vec![(RequestDependency::User, Box::from(user.as_bytes()))];
        view(RenderRecord { scope, ..tables.run(&[1]) }, tables.sequence(), now)
    };
    let [ann, ben] = ["ann", "ben"].map(|user| views.add(of(user)));
    let find = |views: &mut SharedViews, user: &str| {
        views.find("http://a/", &vec![(RequestDependency::User, Box::from(user.as_bytes()))])
    };
    assert_eq!(find(&mut views, "ann"), Some(ann));
    assert_eq!(find(&mut views, "ben"), Some(ben));
    assert_eq!(views.find_idle("http://a/"), None);
    assert!(views.remove(ann).is_some() && views.remove(ann).is_none());
    assert_eq!(find(&mut views, "ann"), None);
    let again = views.add(of("ann"));
    assert_ne!(again, ann);
    assert!(views.get(ann).is_none());
    assert_eq!(views.without_followers().len(), 2, "nobody looks at any");
    let _looks = Arc::clone(&views.get(again).unwrap().watches[1]);
    assert_eq!(views.without_followers(), [ben]);
}

/// Regression: the server compared each commit with all views, under one lock.
#[test]
fn compares_commit_with_affected_views_only() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut views = SharedViews::default();
    let ids: Vec<ViewId> =
        (0..500).map(|kind| views.add(view(tables.run(&[kind]), tables.sequence(), now))).collect();
    let commit = tables.add(7);
    assert_eq!(views.handle(vec![commit], tables.sequence(), now, 0), 1);
    assert_eq!(views.take_due(now + MIN_INTERVAL), Some(ids[7]));
    assert_eq!(views.take_due(now + MIN_INTERVAL), None);
    // The view depends on a different kind from now on.
    views.begin_render(ids[7], now, tables.sequence());
    end_render(&mut views, ids[7], &tables.run(&[1000]));
    let commit = tables.add(7);
    assert_eq!(views.handle(vec![commit], tables.sequence(), now, 0), 0);
    let commit = tables.add(1000);
    assert_eq!(views.handle(vec![commit], tables.sequence(), now, 0), 1);
    drop(views.remove(ids[8]));
    let commit = tables.add(8);
    assert_eq!(views.handle(vec![commit], tables.sequence(), now, 0), 0);
    let all = vec![Notification::All];
    assert_eq!(views.handle(all, tables.sequence(), now, 0), 499);
}

/// Regression: the server compared each signal with all views.
#[test]
fn compares_signal_with_dependent_views_only() {
    let (tables, now) = (Tables::new(), Instant::now());
    let mut views = SharedViews::default();
    let of = |signal: u64| {
        let mut own = view(tables.run(&[1]), tables.sequence(), now);
        own.regions[0].signals = vec![signal];
        own
    };
    let ids: Vec<ViewId> = (0..100).map(|signal| views.add(of(signal))).collect();
    assert_eq!(views.handle(vec![Notification::Signal(3)], 0, now, 0), 1);
    assert_eq!(views.take_due(now + MIN_INTERVAL), Some(ids[3]));
}

/// Bounds the memory that the pages of one block can take.
#[test]
fn depends_on_whole_tables_when_read_quota_is_used_up() {
    let block = AddressBlock::of([192, 0, 2, 1].into());
    let mut shares = Shares::default();
    shares.charge(Some(block), MAX_READS_OF_BLOCK - 1);
    assert!(shares.has_room_for_reads(Some(block), 1));
    assert!(!shares.has_room_for_reads(Some(block), 2));
    assert!(shares.has_room_for_reads(Some(AddressBlock::LOCAL), 2));
    shares.release(Some(block), MAX_READS_OF_BLOCK - 1);
    assert!(shares.has_room_for_reads(Some(block), 2) && shares.blocks.is_empty());
}

#[test]
fn bounds_views_of_one_block_until_others_follow() {
    let block = AddressBlock::of([192, 0, 2, 1].into());
    let (tables, now) = (Tables::new(), Instant::now());
    let mut views = SharedViews::default();
    let mut own = view(tables.run(&[1]), tables.sequence(), now);
    own.owner = Some(block);
    let id = views.add(own);
    (1..MAX_OF_BLOCK).for_each(|_| views.shares.charge(Some(block), 0));
    assert!(!views.has_room(block) && views.has_room(AddressBlock::LOCAL));
    views.add_client(id, AddressBlock::LOCAL);
    assert!(views.has_room(block));
    drop(views.remove(id));
    assert_eq!(views.shares.reads, 0);
}
