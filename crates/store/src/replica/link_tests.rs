//! Tests of nodes on a reliable stream: programs that differ, as in a rolling upgrade, and cut links.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::schema::{Column, Constant, Index, Schema};
use crate::transaction::Transaction;
use crate::value::Value;

/// Two nodes on one stream, the first with the older program.
struct Upgrade {
    stream: Vec<Vec<u8>>,
    nodes: Vec<(Replica, u64)>,
}

/// The older table: a name and a count.
fn old() -> Schema {
    let columns = vec![Column::of::<String>("name"), Column::of::<i64>("count")];
    Schema { columns, ..Schema::new("note") }
}

/// The newer table has a note and an index over it, before the columns of the older one.
fn new() -> Schema {
    let note =
        Column { default: Some(Constant::Text("none".into())), ..Column::of::<String>("note") };
    let mut schema = old();
    schema.columns.insert(0, note);
    schema.indexes.push(Index { columns: vec![0], is_unique: false });
    schema
}

impl Upgrade {
    fn new() -> Self {
        let mut own = Self { stream: Vec::new(), nodes: Vec::new() };
        own.join(old()).unwrap();
        own
    }

    /// Starts a node with this table.
    fn join(&mut self, schema: Schema) -> Result<(), String> {
        self.nodes.push((Replica::new(Options::new(), || {})?, 0));
        self.exchange()?;
        let (node, _) = self.nodes.last().expect("it was pushed");
        let declared = node.store().declare(&[schema]).map_err(|error| error.to_string())?;
        self.exchange()?;
        declared.wait().map(drop).map_err(|error| error.to_string())
    }

    /// Sends all messages and delivers them to all nodes.
    fn exchange(&mut self) -> Result<(), String> {
        for (node, sent) in &mut self.nodes {
            while let Some((number, message)) = node.unconfirmed_after(*sent) {
                *sent = number;
                self.stream.push(message.to_vec());
            }
        }
        for (node, _) in &self.nodes {
            for message in &self.stream[node.position() as usize..] {
                node.deliver(node.position() + 1, message)?;
            }
        }
        Ok(())
    }

    /// Runs a transaction on a node.
    fn change<T>(&mut self, at: usize, run: impl FnOnce(&mut Transaction) -> T) -> T {
        let store = self.nodes[at].0.store();
        let mut transaction = store.begin();
        let outcome = run(&mut transaction);
        let pending = store.commit(transaction).unwrap();
        self.exchange().unwrap();
        pending.wait().unwrap();
        outcome
    }

    /// The rows of a node, as sorted text: ids of different nodes have no order within a millisecond.
    fn rows(&self, at: usize) -> Vec<String> {
        let read = self.nodes[at].0.store().read();
        let rows = read.table_named("note").unwrap().select().rows();
        let mut rows: Vec<_> = rows.iter().map(|row| format!("{:?}", row.values())).collect();
        rows.sort_unstable();
        rows
    }
}

#[test]
fn older_node_keeps_the_values_of_columns_that_a_newer_one_has_added() {
    let mut upgrade = Upgrade::new();
    let insert = |name: &'static str| {
        move |change: &mut Transaction| {
            change.insert_values("note", &[Value::Text(name), Value::Integer(1)]).unwrap()
        }
    };
    let first = upgrade.change(0, insert("first"));
    upgrade.join(new()).unwrap();
    let values = [Value::Text("tea"), Value::Text("second"), Value::Integer(2)];
    let second = upgrade.change(1, |change| change.insert_values("note", &values).unwrap());
    // The older node inserts and changes rows, the newer one too.
    upgrade.change(0, insert("third"));
    for row in [first, second] {
        upgrade.change(0, |change| {
            change.update_named("note", row, &[("count", Value::Integer(7))]).unwrap();
        });
    }
    upgrade.change(1, |change| {
        change.update_named("note", first, &[("note", Value::Text("milk"))]).unwrap();
    });
    upgrade.change(0, |change| {
        change.update_named("note", first, &[("count", Value::Integer(8))]).unwrap();
    });
    let newer = [
        r#"[Text("milk"), Text("first"), Integer(8)]"#,
        r#"[Text("none"), Text("third"), Integer(1)]"#,
        r#"[Text("tea"), Text("second"), Integer(7)]"#,
    ];
    assert_eq!(upgrade.rows(1), newer);
    let older = [
        r#"[Text("first"), Integer(8)]"#,
        r#"[Text("second"), Integer(7)]"#,
        r#"[Text("third"), Integer(1)]"#,
    ];
    assert_eq!(upgrade.rows(0), older);
    // A node with the older program can still start.
    upgrade.join(old()).unwrap();
    assert_eq!(upgrade.rows(2), older);
}

#[test]
fn nodes_with_different_indexes_reach_the_same_verdict() {
    let mut upgrade = Upgrade::new();
    upgrade.join(new()).unwrap();
    let insert = |note: &'static str| {
        move |change: &mut Transaction| {
            let values = [Value::Text(note), Value::Text("name"), Value::Integer(1)];
            change.insert_values("note", &values).unwrap()
        }
    };
    let row = upgrade.change(1, insert("tea"));
    // The newer node reads by an index that the older one does not have.
    for (note, conflicts) in [("tea", true), ("milk", false)] {
        let store = upgrade.nodes[1].0.store().clone();
        let mut transaction = store.begin();
        let table = transaction.table_named("note").unwrap();
        drop(table.select().equals_value(0, Value::Text(note)).unwrap().rows());
        transaction
            .insert_values("note", &[Value::Text("x"), Value::Text(note), Value::Integer(1)])
            .unwrap();
        upgrade.change(0, |change| {
            change.update_named("note", row, &[("count", Value::Integer(5))]).unwrap();
        });
        // The older node's change was not delivered when the other transaction began.
        let outcome = match store.commit(transaction) {
            Ok(pending) => {
                upgrade.exchange().unwrap();
                pending.wait().err()
            }
            Err(error) => Some(error),
        };
        assert_eq!(outcome, conflicts.then_some(Error::Conflict), "{note}");
        let counts = [0, 1].map(|at| upgrade.rows(at).len());
        assert_eq!(counts[0], counts[1]);
    }
}

#[test]
fn node_that_is_cut_off_rejects_commits_until_it_is_connected_again() {
    let mut upgrade = Upgrade::new();
    let insert = |change: &mut Transaction| {
        change.insert_values("note", &[Value::Text("a"), Value::Integer(1)])
    };
    let (node, _) = &upgrade.nodes[0];
    let mut transaction = node.store().begin();
    insert(&mut transaction).unwrap();
    let pending = node.store().commit(transaction).unwrap();
    node.cut_off("a reason");
    assert_eq!(pending.wait(), Err(Error::Unconfirmed("a reason".into())));
    let rejected = node.store().change(insert).wait();
    assert_eq!(rejected, Err(Error::CutOff("a reason".into())));
    assert_eq!((node.waiting(), node.unconfirmed_after(0)), (0, None));
    node.reconnect();
    upgrade.nodes[0].1 = 0;
    upgrade.change(0, |change| insert(change).unwrap());
    assert_eq!(upgrade.rows(0).len(), 1);
    let (node, _) = &upgrade.nodes[0];
    node.end("another reason");
    node.reconnect();
    let rejected = node.store().change(insert).wait();
    assert_eq!(rejected, Err(Error::Broken("another reason".into())));
}

#[test]
fn node_that_cannot_follow_a_renamed_column_says_so() {
    let mut upgrade = Upgrade::new();
    let mut renamed = old();
    renamed.columns[0] =
        Column { former_name: Some("name".into()), ..Column::of::<String>("title") };
    let error = upgrade.join(renamed).unwrap_err();
    assert!(error.contains("another node runs a newer program"), "{error}");
}

/// A node that has just started applies many commits of others between the begin and the end of its
/// transactions.
#[test]
fn change_succeeds_while_its_node_catches_up() {
    let mut upgrade = Upgrade::new();
    upgrade.join(old()).unwrap();
    let row = upgrade.change(0, |change| {
        change.insert_values("note", &[Value::Text("a"), Value::Integer(0)]).unwrap()
    });
    // Ten changes that the second node has not received.
    let Upgrade { stream, nodes } = &mut upgrade;
    let [(ahead, sent), (behind, _)] = &mut nodes[..] else { panic!("there are two nodes") };
    let send = |node: &Replica, sent: &mut u64, stream: &mut Vec<Vec<u8>>| {
        let (number, message) = node.unconfirmed_after(*sent).unwrap();
        *sent = number;
        stream.push(message.to_vec());
    };
    let mut context = Context::from_waker(Waker::noop());
    let set = |change: &mut Transaction, count: i128| {
        change.update_named("note", row, &[("count", Value::Integer(count))])
    };
    for count in 0..10 {
        let change = ahead.store().change(|change| set(change, count));
        let mut change = pin!(change);
        assert!(change.as_mut().poll(&mut context).is_pending());
        send(ahead, sent, stream);
        ahead.deliver(ahead.position() + 1, stream.last().unwrap()).unwrap();
        assert!(change.as_mut().poll(&mut context).is_ready());
    }
    let mut runs = 0;
    let change = behind.store().change(|change| {
        runs += 1;
        set(change, 100)?;
        // Meanwhile the next message arrives.
        if let Some(message) = stream.get(behind.position() as usize) {
            behind.deliver(behind.position() + 1, message).unwrap();
        }
        Ok::<_, Error>(())
    });
    let mut change = pin!(change);
    assert!(change.as_mut().poll(&mut context).is_pending());
    let (_, message) = behind.unconfirmed_after(0).unwrap();
    behind.deliver(behind.position() + 1, &message).unwrap();
    assert_eq!(change.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    assert_eq!(runs, 11);
}
