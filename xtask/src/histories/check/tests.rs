//! Histories that are written by hand, good and bad.

use std::collections::BTreeMap;

use super::check;
use crate::histories::history::{
    Delivered, FinalState, History, Log, Operation, Outcome, Seen, Work,
};

/// A read or a change of keys: `x0` is version 0 of `x`, `x1:a` version 1 that `a` has written.
fn seen(text: &str) -> Vec<Seen> {
    text.split_whitespace()
        .map(|word| {
            let (state, writer) = word.split_once(':').unwrap_or((word, ""));
            let (key, version) = state.split_at(state.len() - 1);
            let version = version.parse().expect("a digit");
            Seen { key: key.to_owned(), version, writer: writer.to_owned() }
        })
        .collect()
}

/// A change that lasted from `times.0` to `times.1`.
fn change(id: &str, times: (u64, u64), reads: &str, written: &str) -> Operation {
    Operation {
        id: id.to_owned(),
        begun: times.0,
        ended: times.1,
        seen: seen(reads),
        written: written.split_whitespace().map(str::to_owned).collect(),
        ..Operation::default()
    }
}

fn read(id: &str, times: (u64, u64), reads: &str) -> Operation {
    Operation { work: Work::Read, ..change(id, times, reads, "") }
}

/// An operation without an acknowledgment.
fn without(outcome: Outcome, operation: Operation) -> Operation {
    Operation { outcome, seen: Vec::new(), ..operation }
}

fn publication(id: &str, times: (u64, u64), cursor: &str) -> Operation {
    Operation {
        work: Work::Publish,
        channel: "news".to_owned(),
        cursor: Some(cursor.to_owned()),
        ..change(id, times, "", "")
    }
}

fn messages(text: &str) -> Vec<Delivered> {
    let message = |word: &str| {
        let (cursor, id) = word.split_once(':').expect("a cursor and an id");
        Delivered { id: id.to_owned(), cursor: Some(cursor.to_owned()) }
    };
    text.split_whitespace().map(message).collect()
}

fn state(node: usize, rows: &str, news: &str) -> FinalState {
    let channels = BTreeMap::from([("news".to_owned(), messages(news))]);
    FinalState { node, sequence: 9, rows: seen(rows), channels }
}

fn log(news: &str) -> Log {
    Log { name: "Poll 0".to_owned(), channel: "news".to_owned(), messages: messages(news) }
}

fn history(operations: Vec<Operation>, finals: Vec<FinalState>) -> History {
    History { operations, finals, ..History::default() }
}

/// Checks that a history is correct, or breaks exactly one rule, whose line contains `expected`.
#[track_caller]
fn expect(history: &History, expected: &str) {
    let broken = check(history);
    match expected {
        "" => assert!(broken.is_empty(), "{broken:?}"),
        _ => assert!(broken.iter().any(|line| line.contains(expected)), "{broken:?}"),
    }
}

#[test]
fn accepts_changes_one_after_the_other() {
    let operations = vec![
        change("a", (1, 2), "x0 y0", "x"),
        change("b", (3, 4), "x1:a y0", "x y"),
        read("r", (5, 6), "x2:b y1:b"),
        // A snapshot may be older than the last acknowledgment.
        read("old", (5, 6), "x1:a y0"),
    ];
    let finals = [0, 1].map(|node| state(node, "x2:b y1:b", ""));
    expect(&history(operations, finals.to_vec()), "");
}

#[test]
fn finds_a_lost_update() {
    let operations = vec![change("a", (1, 5), "x0", "x"), change("b", (2, 6), "x0", "x")];
    expect(&history(operations, Vec::new()), "a and b both wrote version 1 of x");
}

#[test]
fn finds_a_stale_read_of_a_change_after_an_acknowledgment() {
    // `b` reads `x` as it was before `a`, which was acknowledged.
    let operations = vec![change("a", (1, 2), "x0", "x"), change("b", (3, 4), "x0 y0", "y")];
    expect(&history(operations, Vec::new()), "no order explains these operations");
}

#[test]
fn finds_write_skew() {
    let operations = vec![change("a", (1, 5), "x0 y0", "x"), change("b", (2, 6), "x0 y0", "y")];
    expect(&history(operations, Vec::new()), "has read the version before");
}

#[test]
fn finds_a_read_that_is_no_snapshot() {
    let operations = vec![
        change("a", (1, 2), "x0 y0", "x y"),
        change("b", (3, 4), "x1:a y1:a", "x y"),
        read("r", (1, 9), "x1:a y2:b"),
    ];
    expect(&history(operations, Vec::new()), "no order explains these operations");
}

#[test]
fn finds_a_lost_change_at_the_end() {
    let operations = vec![change("a", (1, 2), "x0", "x")];
    let finals = vec![state(0, "", "")];
    expect(&history(operations, finals), "the state of node 0");
}

#[test]
fn finds_different_rows() {
    let operations = vec![change("a", (1, 2), "x0", "x")];
    let finals = vec![state(0, "x1:a", ""), state(1, "", "")];
    expect(&history(operations, finals), "nodes 0 and 1 have different rows");
}

#[test]
fn finds_a_list_with_two_entries_of_one_number() {
    let operations =
        vec![change("a", (1, 5), "list0", "list"), change("b", (2, 6), "list0", "list")];
    let finals = vec![state(0, "list1:a list1:b", "")];
    expect(&history(operations, finals), "has list number 1 twice");
}

#[test]
fn accepts_unknown_results_with_and_without_effect() {
    for rows in ["x1:a", ""] {
        let unknown = without(Outcome::Unknown, change("a", (1, 2), "", "x"));
        expect(&history(vec![unknown], vec![state(0, rows, "")]), "");
    }
}

#[test]
fn finds_an_unknown_change_that_took_effect_twice() {
    let operations =
        vec![without(Outcome::Unknown, change("a", (1, 2), "", "x")), read("r", (3, 4), "x1:a")];
    expect(&history(operations, vec![state(0, "x2:a", "")]), "a took effect twice");
}

#[test]
fn finds_the_effect_of_a_refused_change() {
    let refused = without(Outcome::Refused, change("a", (1, 2), "", "x"));
    expect(&history(vec![refused], vec![state(0, "x1:a", "")]), "a was refused");
}

#[test]
fn finds_an_invented_writer() {
    expect(&history(Vec::new(), vec![state(0, "x1:a", "")]), "no operation a writes version 1");
}

#[test]
fn finds_a_read_before_the_position_that_it_carried() {
    let at = |sequence, is_stale| {
        let read = read("r", (3, 4), "x0");
        let (sequence, token) = (Some(sequence), Some(5));
        history(vec![Operation { sequence, token, is_stale, ..read }], Vec::new())
    };
    expect(&at(4, false), "r carried position 5, and read the state at 4");
    expect(&at(4, true), "");
    expect(&at(5, false), "");
}

#[test]
fn finds_a_read_that_lacks_a_change_of_its_sequence() {
    let positioned = Operation { position: Some(5), ..change("a", (1, 2), "x0", "x") };
    let read = |sequence| Operation { sequence: Some(sequence), ..read("r", (3, 4), "x0") };
    let operations = vec![positioned.clone(), read(6)];
    expect(&history(operations, Vec::new()), "is within the sequence of");
    expect(&history(vec![positioned, read(4)], Vec::new()), "");
}

#[test]
fn finds_two_states_of_one_sequence() {
    let at = |id, reads| Operation { sequence: Some(5), ..read(id, (3, 4), reads) };
    let operations = vec![change("a", (1, 9), "x0", "x"), at("r", "x0"), at("s", "x1:a")];
    expect(&history(operations, Vec::new()), "r and s read different states at sequence 5");
}

#[test]
fn finds_positions_that_go_back() {
    let at = |id, times, position| {
        let seen = if id == "a" { "x0" } else { "x1:a" };
        Operation { position, ..change(id, times, seen, "x") }
    };
    let with = |positions: [Option<u64>; 2]| History {
        has_positions: true,
        ..history(vec![at("a", (1, 2), positions[0]), at("b", (3, 4), positions[1])], Vec::new())
    };
    expect(&with([Some(5), Some(6)]), "");
    expect(&with([Some(5), Some(5)]), "b has position 5, and a had 5 before it began");
    expect(&with([Some(5), None]), "b was acknowledged without a position");
}

#[test]
fn requires_new_reads_on_one_machine() {
    let operations = vec![change("a", (1, 2), "x0", "x"), read("r", (3, 4), "x0")];
    let mut history = history(operations, Vec::new());
    expect(&history, "");
    history.has_strict_reads = true;
    expect(&history, "no order explains these operations");
}

/// Two publications and one subscriber. `nodes` has the messages of each node.
fn published(nodes: [&str; 2], log_of: &str) -> History {
    let operations = vec![publication("a", (1, 2), "c1"), publication("b", (3, 4), "c2")];
    let finals = [(0, nodes[0]), (1, nodes[1])].map(|(node, news)| state(node, "", news));
    History { logs: vec![log(log_of)], ..history(operations, finals.to_vec()) }
}

#[test]
fn accepts_messages_in_one_order() {
    expect(&published(["c1:a c2:b"; 2], "c1:a c2:b"), "");
}

#[test]
fn finds_a_lost_publication() {
    expect(&published(["c1:a"; 2], "c1:a"), "message b was acknowledged and is lost");
}

#[test]
fn finds_a_doubled_publication() {
    expect(&published(["c1:a c2:b c3:b"; 2], "c1:a c2:b c3:b"), "message b is there twice");
}

#[test]
fn finds_two_orders() {
    expect(&published(["c1:a c2:b", "c1:b c2:a"], "c1:a c2:b"), "have different messages");
}

#[test]
fn finds_an_order_against_the_acknowledgments() {
    expect(&published(["c2:b c3:a"; 2], "c2:b c3:a"), "message b precedes a");
}

#[test]
fn finds_a_cursor_that_differs_from_the_acknowledgment() {
    expect(&published(["c1:a c3:b"; 2], "c1:a c3:b"), "was acknowledged with");
}

#[test]
fn finds_an_invented_message() {
    let news = "c1:a c2:b c3:z";
    expect(&published([news; 2], news), "message z was never published");
}

#[test]
fn finds_a_refused_publication() {
    let mut history = published(["c1:a c2:b"; 2], "c1:a c2:b");
    history.operations[1].outcome = Outcome::Refused;
    expect(&history, "message b was refused and is there");
}

#[test]
fn accepts_publications_with_an_unknown_result() {
    for news in ["c1:a", "c1:a c2:b"] {
        let mut history = published([news; 2], news);
        history.operations[1].outcome = Outcome::Unknown;
        expect(&history, "");
    }
}

#[test]
fn finds_what_a_subscriber_has_missed_or_received_twice() {
    let news = ["c1:a c2:b"; 2];
    expect(&published(news, "c1:a"), "subscriber Poll 0: message b was not received");
    expect(&published(news, "c1:a c2:b c2:b"), "subscriber Poll 0: message b was received twice");
    expect(&published(news, "c2:b c1:a"), "was received at place 0 instead of");
    expect(&published(news, "c1:a c3:b"), "has the cursor");
}
