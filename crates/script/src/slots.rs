//! Values under numbers that are used again.

/// Values under numbers. The number of a removed value is given to a later one.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    values: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(crate) fn insert(&mut self, value: T) -> usize {
        if let Some(slot) = self.free.pop() {
            self.values[slot] = Some(value);
            return slot;
        }
        self.values.push(Some(value));
        self.values.len() - 1
    }

    pub(crate) fn remove(&mut self, slot: usize) -> Option<T> {
        let value = self.values.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&T> {
        self.values.get(slot)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.values.get_mut(slot)?.as_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let values = self.values.iter_mut().enumerate();
        values.filter_map(|(slot, value)| Some((slot, value.as_mut()?)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.values.iter().enumerate().filter_map(|(slot, value)| Some((slot, value.as_ref()?)))
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.free.clear();
    }
}
