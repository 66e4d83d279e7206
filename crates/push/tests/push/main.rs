//! Tests of bine-push through its public API.

mod allocator;
mod channel_quota;
mod derived;
mod expiry;
mod format;
mod hub;
mod memory;
mod model;
mod quotas;
mod waiters;
