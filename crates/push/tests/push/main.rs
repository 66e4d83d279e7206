//! Tests of bine-push through its public API.

mod allocator;
mod format;
mod hub;
mod memory;
mod model;
mod quotas;
mod waiters;
