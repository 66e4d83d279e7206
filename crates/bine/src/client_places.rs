//! Places for work that costs all clients, of which one client may take a part.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_server::AddressBlock;

/// The places that are taken.
#[derive(Debug, Default)]
pub(crate) struct ClientPlaces {
    taken: Mutex<TakenPlaces>,
}

#[derive(Debug, Default)]
struct TakenPlaces {
    count: usize,
    by_block: HashMap<AddressBlock, usize>,
}

/// A place. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct ClientPlace {
    places: Arc<ClientPlaces>,
    /// The client that counts; `None`: the server itself.
    block: Option<AddressBlock>,
}

impl ClientPlaces {
    /// Takes a place, unless `most` are taken.
    pub(crate) fn take(self: &Arc<Self>, most: usize) -> Option<ClientPlace> {
        self.taken().add(most)?;
        Some(ClientPlace { places: Arc::clone(self), block: None })
    }

    /// Takes a place for a client, unless `most` are taken, or `most_of_block` by its address block.
    pub(crate) fn take_for(
        self: &Arc<Self>,
        block: AddressBlock,
        most: usize,
        most_of_block: usize,
    ) -> Option<ClientPlace> {
        let mut taken = self.taken();
        let own = taken.by_block.get(&block).copied().unwrap_or_default();
        if own >= most_of_block {
            return None;
        }
        taken.add(most)?;
        taken.by_block.insert(block, own + 1);
        drop(taken);
        Some(ClientPlace { places: Arc::clone(self), block: Some(block) })
    }

    /// The number of places that are taken.
    #[cfg(any(test, feature = "compress"))]
    pub(crate) fn count(&self) -> usize {
        self.taken().count
    }

    fn taken(&self) -> MutexGuard<'_, TakenPlaces> {
        // No code panics while it holds this lock, so a poisoned state is still consistent.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TakenPlaces {
    fn add(&mut self, most: usize) -> Option<()> {
        if self.count >= most {
            return None;
        }
        self.count += 1;
        Some(())
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.count -= 1;
        if let Some(block) = &self.block
            && let Some(own) = taken.by_block.get_mut(block)
        {
            *own -= 1;
            if *own == 0 {
                taken.by_block.remove(block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_one_address_block_and_all_clients() {
        let places = Arc::new(ClientPlaces::default());
        let block = |number: u8| AddressBlock::of([10, 0, number, 1].into());
        let take = |number| places.take_for(block(number), 3, 2);
        let (first, second) = (take(1).unwrap(), take(1).unwrap());
        assert!(take(1).is_none(), "its part is taken");
        let other = take(2).unwrap();
        assert!(take(3).is_none() && places.take(3).is_none(), "all are taken");
        drop(first);
        let own = places.take(3).unwrap();
        assert!(take(1).is_none());
        drop(own);
        assert!(take(1).is_some());
        drop((second, other));
        assert_eq!(places.count(), 0);
        assert!(places.taken().by_block.is_empty(), "it forgets clients without a place");
    }
}
