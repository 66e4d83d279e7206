//! The rules for transactions and reads.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::Write as _;

use crate::histories::history::{FinalState, History, LIST, Operation, Outcome, Seen, Work};

/// A transaction with effects, or a read.
struct Vertex<'h> {
    operation: &'h Operation,
    /// The reason of each edge, by its target.
    edges: BTreeMap<usize, &'static str>,
    /// Whether it is the state of a node at the end.
    is_final: bool,
}

/// The writers of all versions of all keys.
type Writers<'h> = BTreeMap<&'h str, BTreeMap<u32, &'h str>>;

const OVERWRITES: &str = "was overwritten by";
const READS: &str = "was read by";
const READS_BEFORE: &str = "has read the version before";
const REAL_TIME: &str = "ended before the begin of";
const SEQUENCE: &str = "has a smaller sequence than";
const POSITION: &str = "is within the sequence of";

pub(super) fn check(history: &History, broken: &mut Vec<String>) {
    let keys: BTreeSet<&str> =
        history.operations.iter().flat_map(|by| &by.written).map(String::as_str).collect();
    let finals = history.finals.iter().map(|state| as_read(state, &keys, broken));
    let finals: Vec<Operation> = finals.collect();
    check_finals(history, broken);
    let by_id: HashMap<&str, &Operation> =
        history.operations.iter().map(|operation| (&*operation.id, operation)).collect();
    let mut writers = Writers::new();
    let all = || history.operations.iter().chain(&finals);
    for operation in all().filter(|operation| operation.outcome == Outcome::Acknowledged) {
        for seen in &operation.seen {
            note(&mut writers, seen, &seen.key, &by_id, broken);
            if operation.written.contains(&seen.key) {
                let version = seen.version + 1;
                note_writer(&mut writers, (&seen.key, version, &operation.id), broken);
            }
        }
    }
    for entry in history.finals.iter().flat_map(|state| &state.rows) {
        note(&mut writers, entry, &entry.key, &by_id, broken);
    }
    check_positions(history, broken);
    let effective: BTreeSet<&str> =
        writers.values().flat_map(BTreeMap::values).copied().filter(|id| !id.is_empty()).collect();
    let takes_part = |operation: &&Operation| match operation.work {
        Work::Publish => false,
        Work::Change if operation.outcome == Outcome::Unknown => effective.contains(&*operation.id),
        Work::Change | Work::Read => operation.outcome == Outcome::Acknowledged,
    };
    let mut graph: Vec<Vertex<'_>> = history
        .operations
        .iter()
        .filter(takes_part)
        .map(|operation| (operation, false))
        .chain(finals.iter().map(|operation| (operation, true)))
        .map(|(operation, is_final)| Vertex { operation, edges: BTreeMap::new(), is_final })
        .collect();
    connect_versions(&mut graph, &writers);
    connect_times(&mut graph, history.has_strict_reads);
    check_sequences(&graph, broken);
    if let Some(cycle) = shortest_cycle(&graph) {
        broken.push(describe(&graph, &cycle));
    }
}

/// The state of a node as a read of these keys at the end.
fn as_read(state: &FinalState, keys: &BTreeSet<&str>, broken: &mut Vec<String>) -> Operation {
    let mut seen: BTreeMap<&str, Seen> = BTreeMap::new();
    let mut rows: Vec<&Seen> = state.rows.iter().collect();
    rows.sort();
    for row in rows {
        let is_list = row.key.starts_with(LIST);
        let expected =
            if is_list { seen.get(&*row.key).map_or(1, |last| last.version + 1) } else { 1 };
        let is_wrong = if is_list { row.version != expected } else { seen.contains_key(&*row.key) };
        if is_wrong {
            let (node, key, version) = (state.node, &row.key, row.version);
            broken
                .push(format!("node {node} has {key} number {version} twice, or lacks one before"));
        }
        seen.insert(&row.key, row.clone());
    }
    for key in keys {
        let none = || Seen { key: (*key).to_owned(), version: 0, writer: String::new() };
        seen.entry(key).or_insert_with(none);
    }
    Operation {
        id: format!("the state of node {}", state.node),
        node: state.node,
        client: usize::MAX,
        begun: u64::MAX,
        ended: u64::MAX,
        work: Work::Read,
        seen: seen.into_values().collect(),
        sequence: Some(state.sequence),
        ..Operation::default()
    }
}

/// Compares the rows of all nodes.
fn check_finals(history: &History, broken: &mut Vec<String>) {
    let Some(first) = history.finals.first() else { return };
    let of = |state: &FinalState| state.rows.iter().cloned().collect::<BTreeSet<Seen>>();
    let rows = of(first);
    for other in &history.finals[1..] {
        let others = of(other);
        if let Some(row) = rows.symmetric_difference(&others).next() {
            let (one, two) = (first.node, other.node);
            broken.push(format!(
                "nodes {one} and {two} have different rows: {row:?} is on one of them"
            ));
        }
    }
}

/// Notes the writer of a version that was read, and checks it.
fn note<'h>(
    writers: &mut Writers<'h>,
    seen: &'h Seen,
    key: &'h str,
    by_id: &HashMap<&str, &Operation>,
    broken: &mut Vec<String>,
) {
    let Seen { version, writer, .. } = seen;
    if *version == 0 {
        if !writer.is_empty() {
            broken.push(format!("{key} has no version, and the writer {writer}"));
        }
        return;
    }
    match by_id.get(&**writer) {
        Some(operation) if operation.outcome == Outcome::Refused => {
            let answer = &operation.answer;
            broken.push(format!(
                "{writer} was refused ({answer}), and wrote version {version} of {key}"
            ));
        }
        Some(operation) if operation.written.iter().any(|written| written == key) => {}
        _ => broken.push(format!("no operation {writer} writes version {version} of {key}")),
    }
    note_writer(writers, (key, *version, writer), broken);
}

fn note_writer<'h>(
    writers: &mut Writers<'h>,
    (key, version, writer): (&'h str, u32, &'h str),
    broken: &mut Vec<String>,
) {
    let versions = writers.entry(key).or_default();
    match versions.get(&version) {
        Some(known) if *known == writer => return,
        Some(known) => {
            broken.push(format!("{known} and {writer} both wrote version {version} of {key}"));
            return;
        }
        None => {}
    }
    if let Some((other, _)) = versions.iter().find(|(_, known)| **known == writer) {
        broken.push(format!(
            "{writer} took effect twice: it wrote versions {other} and {version} of {key}"
        ));
    }
    versions.insert(version, writer);
}

/// Checks the positions of acknowledgments.
fn check_positions(history: &History, broken: &mut Vec<String>) {
    if !history.has_positions {
        return;
    }
    let acknowledged = history.operations.iter().filter(|operation| {
        operation.work == Work::Change && operation.outcome == Outcome::Acknowledged
    });
    let mut by_end: Vec<(&Operation, u64)> = Vec::new();
    for operation in acknowledged {
        match operation.position {
            Some(position) => by_end.push((operation, position)),
            None => broken.push(format!("{} was acknowledged without a position", operation.id)),
        }
    }
    let mut by_begin = by_end.clone();
    by_end.sort_by_key(|(operation, _)| operation.ended);
    by_begin.sort_by_key(|(operation, _)| operation.begun);
    let mut ended = by_end.into_iter().peekable();
    let mut highest: Option<(&Operation, u64)> = None;
    for (operation, position) in by_begin {
        while let Some(before) = ended.next_if(|(before, _)| before.ended < operation.begun) {
            if highest.is_none_or(|(_, position)| position < before.1) {
                highest = Some(before);
            }
        }
        if let Some((before, lower)) = highest
            && lower >= position
        {
            broken.push(format!(
                "{} has position {position}, and {} had {lower} before it began",
                operation.id, before.id
            ));
        }
    }
}

/// Adds the dependencies by the versions of keys.
fn connect_versions(graph: &mut [Vertex<'_>], writers: &Writers<'_>) {
    let places: HashMap<String, usize> = graph
        .iter()
        .enumerate()
        .filter(|(_, vertex)| vertex.operation.work == Work::Change)
        .map(|(place, vertex)| (vertex.operation.id.clone(), place))
        .collect();
    for versions in writers.values() {
        let chain: Vec<usize> =
            versions.values().filter_map(|writer| places.get(*writer).copied()).collect();
        for pair in chain.windows(2) {
            connect(graph, pair[0], pair[1], OVERWRITES);
        }
    }
    for reader in 0..graph.len() {
        let operation = graph[reader].operation;
        if operation.outcome != Outcome::Acknowledged {
            continue;
        }
        for Seen { key, version, .. } in &operation.seen {
            let Some(versions) = writers.get(&**key) else { continue };
            let place = |writer: &&str| places.get(*writer).copied();
            // Versions between may have unknown writers.
            let before = versions.range(..=version).rev().find_map(|(_, writer)| place(writer));
            let after = versions.range(version + 1..).find_map(|(_, writer)| place(writer));
            if let Some(before) = before {
                connect(graph, before, reader, READS);
            }
            if let Some(after) = after {
                connect(graph, reader, after, READS_BEFORE);
            }
        }
    }
    // A read of a key that was never written has no entry above.
}

/// Adds the order by time, by positions and by sequences.
fn connect_times(graph: &mut [Vertex<'_>], has_strict_reads: bool) {
    for from in 0..graph.len() {
        for to in 0..graph.len() {
            let (a, b) = (&graph[from], &graph[to]);
            let (one, two) = (a.operation, b.operation);
            let has_ended = one.outcome == Outcome::Acknowledged && one.ended < two.begun;
            let is_ordered = b.is_final || two.work == Work::Change || has_strict_reads;
            let is_within = one.work == Work::Change
                && one.position.zip(two.sequence).is_some_and(|(own, other)| own <= other);
            let is_before = one.sequence.zip(two.sequence).is_some_and(|(own, other)| own < other);
            if from == to || (a.is_final && b.is_final) {
            } else if has_ended && is_ordered {
                connect(graph, from, to, REAL_TIME);
            } else if is_within {
                connect(graph, from, to, POSITION);
            } else if is_before {
                connect(graph, from, to, SEQUENCE);
            }
        }
    }
}

fn connect(graph: &mut [Vertex<'_>], from: usize, to: usize, why: &'static str) {
    if from != to {
        graph[from].edges.entry(to).or_insert(why);
    }
}

/// Compares reads of the same sequence, and each sequence with the position that its request carried.
fn check_sequences(graph: &[Vertex<'_>], broken: &mut Vec<String>) {
    let mut known: HashMap<(u64, &str), (&Seen, &Operation)> = HashMap::new();
    for operation in graph.iter().map(|vertex| vertex.operation) {
        let Some(sequence) = operation.sequence else { continue };
        if let Some(token) = operation.token
            && token > sequence
            && !operation.is_stale
        {
            broken.push(format!(
                "{} carried position {token}, and read the state at {sequence}",
                operation.id
            ));
        }
        for seen in &operation.seen {
            let (first, by) = *known.entry((sequence, &seen.key)).or_insert((seen, operation));
            if first != seen {
                broken.push(format!(
                    "{} and {} read different states at sequence {sequence}: {first:?} and {seen:?}",
                    by.id, operation.id
                ));
            }
        }
    }
}

/// Returns the shortest cycle; `None` if there is none.
fn shortest_cycle(graph: &[Vertex<'_>]) -> Option<Vec<usize>> {
    let mut incoming = vec![0_usize; graph.len()];
    for target in graph.iter().flat_map(|vertex| vertex.edges.keys()) {
        incoming[*target] += 1;
    }
    let mut free: Vec<usize> = (0..graph.len()).filter(|place| incoming[*place] == 0).collect();
    let mut is_left = vec![true; graph.len()];
    while let Some(place) = free.pop() {
        is_left[place] = false;
        for target in graph[place].edges.keys() {
            incoming[*target] -= 1;
            if incoming[*target] == 0 {
                free.push(*target);
            }
        }
    }
    let left = (0..graph.len()).filter(|place| is_left[*place]);
    left.filter_map(|start| cycle_through(graph, start, &is_left)).min_by_key(Vec::len)
}

/// Returns the shortest cycle through a vertex, by a search in breadth.
fn cycle_through(graph: &[Vertex<'_>], start: usize, is_left: &[bool]) -> Option<Vec<usize>> {
    let mut before = vec![None; graph.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(place) = queue.pop_front() {
        for target in graph[place].edges.keys().copied().filter(|target| is_left[*target]) {
            if target == start {
                let mut cycle = vec![place];
                while let Some(earlier) = before[cycle[cycle.len() - 1]] {
                    cycle.push(earlier);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if before[target].is_none() {
                before[target] = Some(place);
                queue.push_back(target);
            }
        }
    }
    None
}

fn describe(graph: &[Vertex<'_>], cycle: &[usize]) -> String {
    let mut text = "no order explains these operations: ".to_owned();
    for (index, place) in cycle.iter().enumerate() {
        let next = cycle[(index + 1) % cycle.len()];
        let why = graph[*place].edges[&next];
        // Writing into a String cannot fail.
        let _ = write!(text, "{} {why} ", graph[*place].operation.id);
    }
    text + &graph[cycle[0]].operation.id
}
