use bine_store::*;
use std::time::Duration;
struct Instant(u64);
impl Instant { fn ns() -> u64 { std::fs::read_to_string("/proc/thread-self/schedstat").unwrap().split(' ').next().unwrap().parse().unwrap() } fn now() -> Self { Instant(Self::ns()) } fn elapsed(&self) -> Duration { Duration::from_nanos(Self::ns() - self.0) } }
struct Row { id: Id<Row>, a: String, b: u64, c: String }
impl Table for Row {
    fn schema() -> Schema { Schema { columns: vec![Column::new("a", String::kind()), Column::new("b", u64::kind()), Column::new("c", String::kind())], indexes: vec![Index{columns:vec![1],is_unique:false}], ..Schema::new("row") } }
    fn id(&self) -> RowId { self.id.row() }
    fn set_id(&mut self, id: RowId) { self.id = Id::of(id) }
    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) { to.extend([self.a.value(), self.b.value(), self.c.value()]) }
    fn from_values(id: RowId, v: &[Value<'_>]) -> Option<Self> { Some(Row { id: Id::of(id), a: Field::from_value(v[0])?, b: Field::from_value(v[1])?, c: Field::from_value(v[2])? }) }
}
fn rss() -> u64 { std::fs::read_to_string("/proc/self/status").unwrap().lines().find(|l| l.starts_with("VmRSS")).unwrap().split_whitespace().nth(1).unwrap().parse().unwrap() }
fn main() {
    let store = Store::in_memory(Options::new().table::<Row>().sync(Sync::None)).unwrap();
    let row = |n: u64| Row { id: Id::new(), a: format!("name {n}"), b: n % 1000, c: "x".repeat(60) };
    let before = rss();
    let t = Instant::now();
    let mut ids = Vec::new();
    for chunk in 0..100u64 { 
        let mut tx = store.begin();
        for n in 0..10_000 { ids.push(tx.insert(row(chunk * 10_000 + n)).unwrap()); }
        store.commit(tx).unwrap().wait().unwrap();
    }
    println!("insert 1M {:?} rss {} KiB", t.elapsed(), rss() - before);
    let t = Instant::now();
    for n in 0..100_000u64 { let mut tx = store.begin(); tx.insert(row(n)).unwrap(); store.commit(tx).unwrap().wait().unwrap(); }
    println!("commit one {:?}", t.elapsed() / 100_000);
    let hot = &ids[500_000..501_000];
    let mut sum = 0;
    for _ in 0..3 {
    let snap = store.read();
    let t = Instant::now();
    for n in 0..1_000_000 { if n % 1000 == 0 { } let r = snap.get(hot[n % 1000]).unwrap(); sum += r.b + r.a.len() as u64; }
    println!("hot get {:?}", t.elapsed() / 1_000_000);
    }
    let mut x = 1u64; let t = Instant::now(); let snap = store.read();
    for _ in 0..1_000_000 { x ^= x << 13; x ^= x >> 7; x ^= x << 17; let r = snap.get(ids[(x % 1_000_000) as usize]).unwrap(); sum += r.b; }
    println!("random get {:?}", t.elapsed() / 1_000_000);
    let t = Instant::now();
    for _ in 0..100_000 { let s = store.read(); sum += s.newest::<Row>(50).len() as u64; }
    println!("newest 50 {:?}", t.elapsed() / 100_000);
    let by: By<Row, (u64,)> = By::place(0);
    let t = Instant::now();
    for n in 0..100_000u64 { let s = store.read(); sum += s.find(by, n % 1000).take(10).count() as u64; }
    println!("find 10 {:?}", t.elapsed() / 100_000);
    println!("{sum}");
}
