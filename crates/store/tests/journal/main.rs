//! Tests that acknowledged records survive disk failures and kills.

mod backup;
mod bounds;
mod copies;
mod damage;
mod format;
mod interleaved;
mod kills;
mod order;
mod promises;
mod random;
mod recovery;
mod repairs;
mod scratch;
mod simulated;
mod tail;
mod times;
mod trials;
