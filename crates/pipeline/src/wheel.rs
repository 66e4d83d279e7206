//! Decides which deadlines may have come: a wheel of slots whose lists run through the slab
//! entries themselves, so that arming a timer allocates nothing.
//!
//! Moving a deadline further away costs the caller one store: the entry stays where it hangs, and
//! when its slot comes round the owner looks at the deadline and hangs it up again.

use crate::clock::Tick;

/// Width of a slot. Timeouts are seconds; a tenth more does not matter.
const SLOT: u32 = 100;
/// One turn of the wheel is 102.4 s, longer than any default timeout.
const SLOTS: u32 = 1024;
const WORDS: usize = SLOTS as usize / 64;
const NONE: u32 = u32::MAX;
const UNARMED: u32 = u32::MAX;

/// What an entry carries to hang in the wheel.
#[derive(Debug)]
pub(crate) struct Hook {
    previous: u32,
    next: u32,
    /// The slot it hangs in, counted from the clock's beginning.
    slot: u32,
}

impl Hook {
    pub(crate) const fn new() -> Self {
        Self { previous: NONE, next: NONE, slot: UNARMED }
    }

    /// True when it will be handed out at `deadline` or earlier.
    pub(crate) fn covers(&self, deadline: Tick) -> bool {
        self.slot != UNARMED
            && !deadline.is_before(Tick::at(self.slot.wrapping_sub(1).wrapping_mul(SLOT)))
    }
}

/// Gives the wheel the hook of entry `index`.
pub(crate) trait Hooks {
    /// The hook of a living entry; the wheel asks only for entries it holds.
    fn hook(&mut self, index: u32) -> Option<&mut Hook>;
}

pub(crate) struct Wheel {
    heads: Box<[u32]>,
    /// A bit per slot that holds anyone, so that the next one is found in 16 steps at most.
    occupied: [u64; WORDS],
    /// The slot up to which everything was handed out.
    hand: u32,
}

impl Wheel {
    pub(crate) fn new(now: Tick) -> Self {
        Self {
            heads: vec![NONE; SLOTS as usize].into_boxed_slice(),
            occupied: [0; WORDS],
            hand: now.milliseconds() / SLOT,
        }
    }

    /// Hangs `index` up so that it is handed out at `deadline` or, if that is more than one turn
    /// away, once per turn until then.
    /// Says when that is.
    pub(crate) fn arm(
        &mut self,
        entries: &mut impl Hooks,
        index: u32,
        deadline: Tick,
        now: Tick,
    ) -> Tick {
        self.disarm(entries, index);
        let ahead = (deadline.since(now).as_millis() as u32).div_ceil(SLOT).clamp(1, SLOTS - 1);
        let hung = (now.milliseconds() / SLOT).wrapping_add(ahead);
        let slot = hung % SLOTS;
        let head = self.heads[slot as usize];
        let due = Tick::at(hung.wrapping_mul(SLOT));
        let Some(hook) = entries.hook(index) else { return due };
        *hook = Hook { previous: NONE, next: head, slot: hung };
        if let Some(old) = entries.hook(head) {
            old.previous = index;
        }
        self.heads[slot as usize] = index;
        self.occupied[slot as usize / 64] |= 1 << (slot % 64);
        due
    }

    pub(crate) fn disarm(&mut self, entries: &mut impl Hooks, index: u32) {
        let Some(hook) = entries.hook(index) else { return };
        if hook.slot == UNARMED {
            return;
        }
        let Hook { previous, next, slot } = std::mem::replace(hook, Hook::new());
        let slot = slot % SLOTS;
        if let Some(next) = entries.hook(next) {
            next.previous = previous;
        }
        match entries.hook(previous) {
            Some(previous) => previous.next = next,
            None => self.heads[slot as usize] = next,
        }
        if self.heads[slot as usize] == NONE {
            self.occupied[slot as usize / 64] &= !(1 << (slot % 64));
        }
    }

    /// Takes one entry whose slot has come, unhooked; the owner looks whether its deadline has.
    pub(crate) fn take_due(&mut self, entries: &mut impl Hooks, now: Tick) -> Option<u32> {
        let today = now.milliseconds() / SLOT;
        // After a long sleep one look at each slot is enough.
        if today.wrapping_sub(self.hand) > SLOTS {
            self.hand = today.wrapping_sub(SLOTS);
        }
        loop {
            let slot = self.hand % SLOTS;
            let index = self.heads[slot as usize];
            if index != NONE {
                self.disarm(entries, index);
                return Some(index);
            }
            if self.hand == today {
                return None;
            }
            self.hand = self.hand.wrapping_add(1);
        }
    }

    /// When the next occupied slot comes, `None` when nothing hangs here.
    pub(crate) fn next(&self) -> Option<Tick> {
        let from = self.hand % SLOTS;
        let slots = (0..=WORDS as u32).find_map(|step| {
            let word = (from / 64 + step) % WORDS as u32;
            let mut bits = self.occupied[word as usize];
            if step == 0 {
                bits &= u64::MAX << (from % 64);
            }
            (bits != 0).then(|| (word * 64 + bits.trailing_zeros()).wrapping_sub(from) % SLOTS)
        })?;
        Some(Tick::at(self.hand.wrapping_add(slots).wrapping_mul(SLOT)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Hooks for Vec<Hook> {
        fn hook(&mut self, index: u32) -> Option<&mut Hook> {
            self.get_mut(index as usize)
        }
    }

    fn drain(wheel: &mut Wheel, hooks: &mut Vec<Hook>, now: u32) -> Vec<u32> {
        std::iter::from_fn(|| wheel.take_due(hooks, Tick::at(now))).collect()
    }

    #[test]
    fn an_entry_comes_when_its_slot_does_and_not_before() {
        let mut hooks: Vec<Hook> = (0..2).map(|_| Hook::new()).collect();
        let mut wheel = Wheel::new(Tick::at(0));
        wheel.arm(&mut hooks, 0, Tick::at(250), Tick::at(0));
        assert_eq!(wheel.next(), Some(Tick::at(300)));
        assert_eq!(drain(&mut wheel, &mut hooks, 200), [0; 0]);
        assert_eq!(drain(&mut wheel, &mut hooks, 300), [0]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn an_entry_taken_down_never_comes() {
        let mut hooks: Vec<Hook> = (0..3).map(|_| Hook::new()).collect();
        let mut wheel = Wheel::new(Tick::at(0));
        for index in 0..3 {
            wheel.arm(&mut hooks, index, Tick::at(100), Tick::at(0));
        }
        wheel.disarm(&mut hooks, 1);
        assert_eq!(drain(&mut wheel, &mut hooks, 1000), [2, 0]);
    }

    #[test]
    fn a_deadline_beyond_one_turn_is_shown_once_a_turn() {
        let mut hooks = vec![Hook::new()];
        let mut wheel = Wheel::new(Tick::at(0));
        wheel.arm(&mut hooks, 0, Tick::at(200_000), Tick::at(0));
        assert_eq!(drain(&mut wheel, &mut hooks, 102_400), [0]);
    }

    proptest! {
        #[test]
        fn nobody_is_lost_and_nobody_comes_early(
            deadlines in prop::collection::vec(1u32..90_000, 1..40),
            steps in prop::collection::vec(1u32..30_000, 1..20),
        ) {
            let mut hooks: Vec<Hook> = deadlines.iter().map(|_| Hook::new()).collect();
            let mut wheel = Wheel::new(Tick::at(0));
            for (index, deadline) in deadlines.iter().enumerate() {
                wheel.arm(&mut hooks, index as u32, Tick::at(*deadline), Tick::at(0));
            }
            let mut now = 0;
            let mut seen = vec![];
            for step in steps {
                now += step;
                for index in drain(&mut wheel, &mut hooks, now) {
                    prop_assert!(deadlines[index as usize] <= now);
                    seen.push(index);
                }
                for (index, deadline) in deadlines.iter().enumerate() {
                    prop_assert!(deadline + SLOT > now || seen.contains(&(index as u32)));
                }
            }
        }
    }
}
