//! Quotas per address block, and the owners of evictable resources.

mod owner;
mod shares;

pub(crate) use owner::{Evict, Owner};
pub(crate) use shares::{Caps, Shares, eviction_order};
