//! Decides whether what was acknowledged is found again, whatever happens to the disk.

mod damage;
mod format;
mod kills;
mod order;
mod promises;
mod random;
mod scratch;
mod simulated;
mod tail;
