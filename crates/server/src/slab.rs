//! Storage for connections by token: an index that is reused, and a generation that distinguishes
//! its successive entries.

/// Identifies one entry of a slab. A later entry at the same index has a different token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Token {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Token {
    /// The token as the 64 bits of user data that epoll stores.
    pub(crate) fn bits(self) -> u64 {
        (u64::from(self.generation) << 32) + u64::from(self.index)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// Entries per chunk. Growing allocates one chunk and moves no entry, so 100 000 connections never
/// need twice their memory during a reallocation.
const CHUNK: usize = 128;

/// Entries by [`Token`]. The index that was freed last is reused first.
pub(crate) struct Slab<T> {
    chunks: Vec<Box<[Slot<T>]>>,
    vacant: Option<u32>,
    len: usize,
}

struct Slot<T> {
    generation: u32,
    next_vacant: u32,
    entry: Option<T>,
}

const NONE: u32 = u32::MAX;

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new(), vacant: None, len: 0 }
    }

    pub(crate) fn insert(&mut self, entry: T) -> Token {
        let index = match self.vacant {
            Some(index) => index,
            None => self.grow(),
        };
        let place = self.place(index);
        let token = Token { index, generation: place.generation };
        place.entry = Some(entry);
        self.vacant = match place.next_vacant {
            NONE => None,
            next => Some(next),
        };
        self.len += 1;
        token
    }

    pub(crate) fn get(&mut self, token: Token) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(token.index as usize / CHUNK)?;
        let place = &mut chunk[token.index as usize % CHUNK];
        if place.generation == token.generation { place.entry.as_mut() } else { None }
    }

    /// The entry at `index`, in any generation: for links between entries.
    pub(crate) fn at(&mut self, index: u32) -> Option<&mut T> {
        self.chunks.get_mut(index as usize / CHUNK)?[index as usize % CHUNK].entry.as_mut()
    }

    /// The token of the entry at `index`.
    pub(crate) fn token(&mut self, index: u32) -> Option<Token> {
        self.at(index)?;
        Some(Token { index, generation: self.place(index).generation })
    }

    pub(crate) fn remove(&mut self, token: Token) -> Option<T> {
        self.get(token)?;
        let vacant = self.vacant.replace(token.index);
        let place = self.place(token.index);
        place.generation = place.generation.wrapping_add(1);
        place.next_vacant = vacant.unwrap_or(NONE);
        let entry = place.entry.take();
        self.len -= 1;
        entry
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn tokens(&self) -> Vec<Token> {
        let places = self.chunks.iter().flatten().enumerate();
        let entries = places.filter(|(_, place)| place.entry.is_some());
        entries
            .map(|(index, place)| Token { index: index as u32, generation: place.generation })
            .collect()
    }

    fn place(&mut self, index: u32) -> &mut Slot<T> {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    fn grow(&mut self) -> u32 {
        let first = (self.chunks.len() * CHUNK) as u32;
        let chunk = (1..=CHUNK as u32).map(|offset| Slot {
            generation: 0,
            next_vacant: if offset as usize == CHUNK { NONE } else { first + offset },
            entry: None,
        });
        self.chunks.push(chunk.collect());
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_a_stale_token() {
        let mut slab = Slab::new();
        let old = slab.insert("first");
        assert_eq!(slab.remove(old), Some("first"));
        let new = slab.insert("second");
        assert_eq!(old.index, new.index, "the index is reused");
        assert_eq!(slab.get(old), None);
        assert_eq!(slab.remove(old), None);
        assert_eq!(slab.get(new), Some(&mut "second"));
        assert_eq!(Token::from_bits(new.bits()), new);
    }

    #[test]
    fn finds_every_entry_while_the_slab_grows_and_shrinks() {
        let mut slab = Slab::new();
        let tokens: Vec<Token> = (0..1000).map(|number| slab.insert(number)).collect();
        for token in tokens.iter().step_by(3) {
            slab.remove(*token);
        }
        for (number, token) in tokens.iter().enumerate() {
            let expected = if number % 3 == 0 { None } else { Some(number) };
            assert_eq!(slab.get(*token).copied(), expected);
        }
        assert_eq!(slab.len(), 666);
        assert_eq!(slab.tokens().len(), 666);
        let chunks = slab.chunks.len();
        for number in 0..334 {
            slab.insert(number);
        }
        assert_eq!(slab.chunks.len(), chunks, "free entries are reused before the slab grows");
    }
}
