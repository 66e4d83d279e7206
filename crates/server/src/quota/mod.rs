//! Quotas by address block, and the owners of what can be evicted.

mod owner;
mod shares;

pub(crate) use owner::{Evict, Owner};
pub(crate) use shares::{Caps, Shares, in_order_of_eviction};
