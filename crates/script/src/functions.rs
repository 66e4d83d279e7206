//! Functions of the script that the host holds.

use std::sync::Arc;

use rquickjs::{Ctx, Persistent};

use crate::slots::Slots;
use crate::value::{Function, Released};

/// The script's functions that the host holds.
pub(crate) struct Functions {
    held: Slots<Persistent<rquickjs::Function<'static>>>,
    released: Arc<Released>,
    limit: usize,
}

impl Functions {
    pub(crate) fn new(limit: usize) -> Self {
        Self { held: Slots::default(), released: Arc::default(), limit }
    }

    /// A handle of a function; `None` if the host holds too many.
    pub(crate) fn hold<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        function: rquickjs::Function<'js>,
    ) -> Option<Function> {
        self.free_released();
        if self.held.len() >= self.limit {
            return None;
        }
        let slot = self.held.insert(Persistent::save(ctx, function));
        Some(Function::new(slot, &self.released))
    }

    /// The function of a handle; `None` if it belongs to another instance.
    pub(crate) fn restore<'js>(
        &self,
        ctx: &Ctx<'js>,
        function: &Function,
    ) -> Option<rquickjs::Function<'js>> {
        let held = self.held.get(function.slot_in(&self.released)?)?;
        held.clone().restore(ctx).ok()
    }

    /// Forgets the functions that the host has released.
    pub(crate) fn free_released(&mut self) {
        for slot in self.released.take() {
            self.held.remove(slot);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.held.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }
}
