//! Decides, from outside, whether channels keep what they promise.

mod allocator;
mod format;
mod hub;
mod memory;
mod model;
mod quotas;
mod waiters;
