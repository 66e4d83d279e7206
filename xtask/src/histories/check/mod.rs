//! Decides whether a history is one that the guarantees of Bine allow. Pure: it reads no clock and
//! performs no I/O.
//!
//! **Transactions.** Each change reads what it writes, and a key counts its changes. So the history
//! itself has the order of the versions of each key, and the checker need not search for it. From
//! this order follow the dependencies of Adya, Liskov and O'Neil ("Generalized Isolation Level
//! Definitions", ICDE 2000): a change overwrites an earlier change, a read follows a change, a change
//! follows a read of the version before. Transactions are serializable if the dependencies have no
//! cycle. This is the method of Elle (Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from
//! Experimental Observations", VLDB 2020). Further edges express the stronger promises:
//!
//! | promise | rule |
//! |---|---|
//! | strict serializability (Papadimitriou, "The serializability of concurrent database updates", JACM 1979) | a change that was acknowledged before another one began precedes it, and has the smaller position |
//! | a read is a snapshot | it has one place in the order of the changes, not after the changes that begin later; two reads of one sequence agree, and the larger sequence has the later state |
//! | a client reads its own changes | a read that carries a position, of a node that is not cut off, has a sequence that is not smaller, and follows the changes up to it |
//! | an acknowledged change has its effect exactly once, one with an unknown result at most once, a refused one never | the writers of all versions |
//! | nodes are equal | their rows are the same after all faults, and follow all changes |
//!
//! **Messages.** All nodes have the same messages with the same cursors at the end. They are the
//! acknowledged publications, exactly once, and some of those with an unknown result. A publication that was
//! acknowledged before another one began precedes it. Each subscriber has received exactly these
//! messages, in this order.

mod messages;
#[cfg(test)]
mod tests;
mod transactions;

use super::history::History;

/// Returns a line for each rule that the history breaks; an empty list if it is correct.
pub(super) fn check(history: &History) -> Vec<String> {
    let mut broken = Vec::new();
    transactions::check(history, &mut broken);
    messages::check(history, &mut broken);
    broken
}
