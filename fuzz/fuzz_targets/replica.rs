//! Target: messages of the stream that nodes share, and blocks of a snapshot. Two nodes that accept the
//! same messages have the same rows.
//!
//! The input is messages, each after its length in two bytes. The target completes their beginning: the
//! version, one of two nodes, and the number of the message.

#![no_main]

use bine_store::{Column, Index, Options, Replica, Schema};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let nodes = [node(), node()];
    let mut numbers = [0_u8; 2];
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        let (body, behind) = behind.split_at(length);
        rest = behind;
        let writer = body.first().map_or(0, |first| first % 2);
        let number = &mut numbers[usize::from(writer)];
        // The encoding of a number has one byte below 128.
        if *number == 127 {
            break;
        }
        *number += 1;
        let message = [&[1][..], &[writer; 16], &[*number], body].concat();
        let done = nodes.each_ref().map(|node| node.deliver(node.position() + 1, &message));
        assert_eq!(done[0], done[1]);
        if done[0].is_err() {
            break;
        }
    }
    let rows = |node: &Replica| {
        let read = node.store().read();
        let table = read.table_named("note").expect("it is declared");
        let rows = table.select().rows();
        (read.sequence(), format!("{:?}", rows.iter().map(|row| row.values()).collect::<Vec<_>>()))
    };
    assert_eq!(rows(&nodes[0]), rows(&nodes[1]));
    let blocks = [&[32][..], bytes].concat();
    let _ = Replica::from_snapshot(Options::new(), [Ok(blocks), Ok(vec![33])], || {});
});

/// A node with a table of a unique text and a number.
fn node() -> Replica {
    let node = Replica::new(Options::new(), || {}).expect("a thread starts");
    let mut note = Schema::new("note");
    note.columns.push(Column::of::<String>("name"));
    note.columns.push(Column::of::<i64>("count"));
    note.indexes.push(Index { columns: vec![0], is_unique: true });
    let declared = node.store().declare(&[note]).expect("the table is valid");
    let (_, message) = node.unconfirmed_after(0).expect("the table is new");
    node.deliver(1, &message).expect("it is its own message");
    declared.wait().expect("it is delivered");
    node
}
