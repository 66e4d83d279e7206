//! A timer wheel, which finds the connections whose deadline may have passed, without allocating.
//!
//! The lists of the wheel are intrusive: they link the slab entries themselves. Extending a
//! deadline costs the caller one store, since the entry stays in its slot. When the slot expires,
//! the owner compares the deadline and arms the entry again.
//!
//! Every operation that takes the time first moves the entries of all expired slots to one list of
//! due entries. Arming therefore always counts from the present, however long the loop was idle.
//! The `now` of a call must not be earlier than that of the call before it: the wheel would
//! interpret a smaller reading as 49 idle days.

use crate::time::clock::Tick;

/// The width of a slot in milliseconds. It is a power of two, so that slots stay aligned when a
/// [`Tick`] wraps. Timeouts are whole seconds, so an extra eighth of a second does not matter.
const SLOT: u32 = 128;
/// The number of slots. One turn of the wheel is 131 s, longer than any default timeout.
const SLOTS: u32 = 1024;
const WORDS: usize = SLOTS as usize / 64;
const NONE: u32 = u32::MAX;
/// Sentinels of [`Hook::time`]. They cannot be times, because every time is a multiple of `SLOT`.
const UNARMED: u32 = u32::MAX;
const DUE: u32 = u32::MAX - 1;

/// The wheel's links of one entry.
#[derive(Debug)]
pub(crate) struct Hook {
    previous: u32,
    next: u32,
    /// The time of the entry's slot in milliseconds, or `UNARMED`, or `DUE`.
    time: u32,
}

impl Hook {
    pub(crate) const fn new() -> Self {
        Self { previous: NONE, next: NONE, time: UNARMED }
    }

    /// Whether the wheel returns the entry no later than one slot after `deadline`.
    pub(crate) fn covers(&self, deadline: Tick) -> bool {
        match self.time {
            UNARMED => false,
            DUE => true,
            time => !deadline.is_before(Tick::at(time.wrapping_sub(SLOT))),
        }
    }
}

/// Access to the hooks of the entries by index.
pub(crate) trait Hooks {
    /// Returns the hook of a live entry. The wheel asks only for entries that it holds.
    fn hook(&mut self, index: u32) -> Option<&mut Hook>;
}

pub(crate) struct Wheel {
    /// The first entry of each slot's list.
    heads: Box<[u32]>,
    /// The first entry of the due list: expired entries that the owner has not taken yet.
    due: u32,
    /// One bit per slot that has entries, so that a search for the next entry takes at most 17
    /// steps.
    occupied: [u64; WORDS],
    /// The time of the first slot that has not expired, in milliseconds. Invariant: every armed
    /// entry is due, or its time is in `hand..hand + SLOTS * SLOT`.
    hand: u32,
}

impl Wheel {
    pub(crate) fn new(now: Tick) -> Self {
        Self {
            heads: vec![NONE; SLOTS as usize].into_boxed_slice(),
            due: NONE,
            occupied: [0; WORDS],
            hand: slot_after(now),
        }
    }

    /// Arms entry `index` and returns the time at which the wheel returns it: within one slot after
    /// `deadline`, or earlier when `deadline` is more than one turn of the wheel away.
    pub(crate) fn arm(
        &mut self,
        entries: &mut impl Hooks,
        index: u32,
        deadline: Tick,
        now: Tick,
    ) -> Tick {
        self.disarm(entries, index);
        self.advance(entries, now);
        let ahead = deadline.since(Tick::at(self.hand)).as_millis() as u32;
        let slots = ahead.div_ceil(SLOT).min(SLOTS - 1);
        let time = self.hand.wrapping_add(slots * SLOT);
        let slot = slot_of(time);
        let head = std::mem::replace(&mut self.heads[slot], NONE);
        let Some(hook) = entries.hook(index) else {
            self.heads[slot] = head;
            return Tick::at(time);
        };
        *hook = Hook { previous: NONE, next: head, time };
        if let Some(old) = entries.hook(head) {
            old.previous = index;
        }
        self.heads[slot] = index;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        Tick::at(time)
    }

    pub(crate) fn disarm(&mut self, entries: &mut impl Hooks, index: u32) {
        let Some(hook) = entries.hook(index) else { return };
        let Hook { previous, next, time } = std::mem::replace(hook, Hook::new());
        if time == UNARMED {
            return;
        }
        if let Some(next) = entries.hook(next) {
            next.previous = previous;
        }
        if let Some(previous) = entries.hook(previous) {
            previous.next = next;
        } else if time == DUE {
            self.due = next;
        } else {
            let slot = slot_of(time);
            self.heads[slot] = next;
            if next == NONE {
                self.occupied[slot / 64] &= !(1 << (slot % 64));
            }
        }
    }

    /// Removes one expired entry from the wheel, disarmed. The owner compares the entry's deadline
    /// and arms it again if the deadline has not passed; the wheel then returns it only at a later
    /// `now`.
    pub(crate) fn take_due(&mut self, entries: &mut impl Hooks, now: Tick) -> Option<u32> {
        self.advance(entries, now);
        let index = self.due;
        if index == NONE {
            return None;
        }
        self.disarm(entries, index);
        Some(index)
    }

    /// Returns the time of the next entry, or `None` when the wheel is empty.
    pub(crate) fn next(&self) -> Option<Tick> {
        if self.due != NONE {
            return Some(Tick::at(self.hand.wrapping_sub(SLOT)));
        }
        let from = slot_of(self.hand) as u32;
        // The loop visits the word of the hand twice: the bits from the hand on are first in time,
        // those before the hand are a whole turn away.
        let slots = (0..=WORDS as u32).find_map(|step| {
            let word = (from / 64 + step) % WORDS as u32;
            let mut bits = self.occupied[word as usize];
            if step == 0 {
                bits &= u64::MAX << (from % 64);
            }
            (bits != 0).then(|| (word * 64 + bits.trailing_zeros()).wrapping_sub(from) % SLOTS)
        })?;
        Some(Tick::at(self.hand.wrapping_add(slots * SLOT)))
    }

    /// Marks every armed entry as due. The owner calls it after more than one turn of the wheel,
    /// when the wrapped `now` does not show that.
    pub(crate) fn pass_all(&mut self, entries: &mut impl Hooks, now: Tick) {
        self.pass(entries, SLOTS);
        self.hand = slot_after(now);
    }

    /// Advances the hand past `now`. The entries of all expired slots move to the due list, the
    /// earliest first.
    fn advance(&mut self, entries: &mut impl Hooks, now: Tick) {
        let hand = slot_after(now);
        let moved = hand.wrapping_sub(self.hand);
        if moved == 0 {
            return;
        }
        self.pass(entries, (moved / SLOT).min(SLOTS));
        self.hand = hand;
    }

    /// Moves the entries of the next `count` slots to the due list.
    fn pass(&mut self, entries: &mut impl Hooks, count: u32) {
        for slot in (0..count).rev() {
            let slot = slot_of(self.hand.wrapping_add(slot * SLOT));
            if self.occupied[slot / 64] & 1 << (slot % 64) != 0 {
                self.make_due(entries, slot);
            }
        }
    }

    /// Prepends the list of `slot` to the due list.
    fn make_due(&mut self, entries: &mut impl Hooks, slot: usize) {
        let first = std::mem::replace(&mut self.heads[slot], NONE);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        let mut last = first;
        while let Some(hook) = entries.hook(last) {
            hook.time = DUE;
            if hook.next == NONE {
                hook.next = self.due;
                break;
            }
            last = hook.next;
        }
        if let Some(old) = entries.hook(self.due) {
            old.previous = last;
        }
        self.due = first;
    }
}

/// Returns the start of the first slot after `now`.
const fn slot_after(now: Tick) -> u32 {
    (now.milliseconds() & !(SLOT - 1)).wrapping_add(SLOT)
}

const fn slot_of(time: u32) -> usize {
    (time / SLOT % SLOTS) as usize
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
    fn returns_an_entry_when_its_slot_expires_and_not_before() {
        let mut hooks: Vec<Hook> = (0..2).map(|_| Hook::new()).collect();
        let mut wheel = Wheel::new(Tick::at(0));
        wheel.arm(&mut hooks, 0, Tick::at(250), Tick::at(0));
        assert_eq!(wheel.next(), Some(Tick::at(256)));
        assert_eq!(drain(&mut wheel, &mut hooks, 255), [0; 0]);
        assert_eq!(drain(&mut wheel, &mut hooks, 256), [0]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn covers_deadlines_from_one_slot_before_its_time_on() {
        let mut hooks = vec![Hook::new()];
        assert!(!hooks[0].covers(Tick::at(5)));
        let mut wheel = Wheel::new(Tick::at(0));
        let armed = wheel.arm(&mut hooks, 0, Tick::at(1000), Tick::at(0));
        assert_eq!(armed, Tick::at(1024));
        let covered = [895, 896, 897, 5000].map(|deadline| hooks[0].covers(Tick::at(deadline)));
        assert_eq!(covered, [false, true, true, true]);
    }

    #[test]
    fn finds_the_next_entry_in_any_part_of_the_wheel() {
        for start in [0, 100, 8_000, 70_000, u32::MAX - 5_000] {
            for wait in [1, 128, 7_000, 20_000, 64_000, 70_000, 120_000, 130_000] {
                let mut hooks: Vec<Hook> = (0..2).map(|_| Hook::new()).collect();
                let now = Tick::at(start);
                let mut wheel = Wheel::new(now);
                let later = now.after(std::time::Duration::from_secs(130));
                wheel.arm(&mut hooks, 1, later, now);
                let due = start.wrapping_add(wait);
                let armed = wheel.arm(&mut hooks, 0, Tick::at(due), now);
                assert_eq!(wheel.next(), Some(armed), "{start} + {wait}");
                assert_eq!(armed.milliseconds() % SLOT, 0);
                let late = armed.milliseconds().wrapping_sub(due);
                assert!(late < SLOT, "{start} + {wait}: {late}");
            }
        }
    }

    #[test]
    fn returns_no_disarmed_entry() {
        let mut hooks: Vec<Hook> = (0..3).map(|_| Hook::new()).collect();
        let mut wheel = Wheel::new(Tick::at(0));
        for index in 0..3 {
            wheel.arm(&mut hooks, index, Tick::at(100), Tick::at(0));
        }
        wheel.disarm(&mut hooks, 1);
        assert_eq!(drain(&mut wheel, &mut hooks, 1000), [2, 0]);
    }

    #[test]
    fn disarms_due_entries() {
        let mut hooks: Vec<Hook> = (0..4).map(|_| Hook::new()).collect();
        let mut wheel = Wheel::new(Tick::at(0));
        for index in 0..4 {
            wheel.arm(&mut hooks, index, Tick::at(100 + 200 * (index / 2)), Tick::at(0));
        }
        assert_eq!(wheel.take_due(&mut hooks, Tick::at(1000)), Some(1));
        wheel.disarm(&mut hooks, 3);
        assert!(hooks[0].covers(Tick::at(100)) && !hooks[1].covers(Tick::at(100)));
        assert_eq!(drain(&mut wheel, &mut hooks, 1000), [0, 2]);
    }

    #[test]
    fn returns_a_deadline_beyond_one_turn_once_per_turn() {
        let mut hooks = vec![Hook::new()];
        let mut wheel = Wheel::new(Tick::at(0));
        wheel.arm(&mut hooks, 0, Tick::at(200_000), Tick::at(0));
        assert_eq!(wheel.next(), Some(Tick::at(SLOTS * SLOT)));
        assert_eq!(drain(&mut wheel, &mut hooks, SLOTS * SLOT), [0]);
    }

    /// Symptom: `bine serve` hung at full CPU when a deadline expired after two minutes without
    /// traffic. Cause: the hand did not move while no entry was armed. It later passed over slots
    /// that were still in the future and returned entries that were not due, which the loop armed
    /// into the same slots. Fix: arming first moves the hand to the present.
    #[test]
    fn returns_no_entry_twice_after_an_idle_time() {
        let mut hooks: Vec<Hook> = (0..2).map(|_| Hook::new()).collect();
        let mut wheel = Wheel::new(Tick::at(0));
        let deadlines = [Tick::at(112_000 + 60_000), Tick::at(112_000 + 10_000)];
        wheel.arm(&mut hooks, 0, deadlines[0], Tick::at(112_000));
        wheel.arm(&mut hooks, 1, deadlines[1], Tick::at(112_000));
        let now = Tick::at(122_300);
        let mut taken = vec![];
        while let Some(index) = wheel.take_due(&mut hooks, now) {
            taken.push(index);
            assert!(taken.len() < 10, "handed out without end: {taken:?}");
            if !deadlines[index as usize].has_come(now) {
                wheel.arm(&mut hooks, index, deadlines[index as usize], now);
            }
        }
        assert_eq!(taken, [1]);
    }

    /// Symptom: on a server that had been idle for 38 to 49 days, no timeout fired for days. Cause:
    /// the wheel interpreted the time since its last use as an old reading of the clock, and the
    /// hand stayed in the past. Fix: only a time less than one turn before the hand is an old
    /// reading.
    #[test]
    fn arms_from_the_present_after_any_idle_time() {
        let days = (1..=49).map(|days| days * 24 * 60 * 60 * 1000);
        for now in days.chain([u32::MAX - 100_000, u32::MAX - 60_000, u32::MAX - 15_000]) {
            let mut hooks = vec![Hook::new()];
            let mut wheel = Wheel::new(Tick::at(0));
            let due = wheel.arm(&mut hooks, 0, Tick::at(now + 10_000), Tick::at(now));
            assert_eq!(due, Tick::at((now + 10_000).next_multiple_of(SLOT)), "{now} ms");
            assert_eq!(drain(&mut wheel, &mut hooks, now + 9_000), [0; 0], "{now} ms");
            assert_eq!(drain(&mut wheel, &mut hooks, now + 10_000 + SLOT), [0], "{now} ms");
        }
    }

    /// Symptom: timeouts fired up to 131 s late on a server that had been idle for 49.7 days less
    /// up to 131 s (found by the simulation). Cause: such an idle time looked like an old reading
    /// of the clock. Fix: the wheel requires ordered times, so no reading is old.
    #[test]
    fn returns_all_expired_entries_after_nearly_a_wrap() {
        let mut hooks: Vec<Hook> = (0..2).map(|_| Hook::new()).collect();
        let mut wheel = Wheel::new(Tick::at(0));
        wheel.arm(&mut hooks, 0, Tick::at(10_000), Tick::at(0));
        wheel.arm(&mut hooks, 1, Tick::at(100_000), Tick::at(0));
        assert_eq!(drain(&mut wheel, &mut hooks, u32::MAX - 60_000), [0, 1]);
    }

    /// An idle time can exceed the range of a tick. The owner then calls `pass_all`, which expires
    /// every entry.
    #[test]
    fn returns_all_expired_entries_after_more_than_a_wrap() {
        let mut hooks: Vec<Hook> = (0..2).map(|_| Hook::new()).collect();
        let mut wheel = Wheel::new(Tick::at(0));
        wheel.arm(&mut hooks, 0, Tick::at(10_000), Tick::at(0));
        wheel.arm(&mut hooks, 1, Tick::at(100_000), Tick::at(0));
        wheel.pass_all(&mut hooks, Tick::at(5_000));
        assert_eq!(drain(&mut wheel, &mut hooks, 5_000), [0, 1]);
        let due = wheel.arm(&mut hooks, 0, Tick::at(7_000), Tick::at(5_000));
        assert_eq!(due, Tick::at(7_040));
    }

    /// One operation on the wheel or the clock.
    #[derive(Clone, Debug)]
    enum Step {
        Rest(u32),
        Arm {
            index: usize,
            ahead: u32,
        },
        Disarm(usize),
        /// Takes all due entries and arms those again whose deadline has not passed.
        Drain,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let rest = prop_oneof![
            4 => 0u32..1000,
            3 => 0u32..200_000,
            // Multiples of a slot or turn test the comparisons at equality.
            2 => (0u32..1100).prop_map(|slots| slots * SLOT),
            1 => 0u32..1_000_000_000,
        ];
        let ahead = prop_oneof![3 => 0u32..100_000, 1 => 0u32..2_000_000_000, 2 => (0u32..1100).prop_map(|slots| slots * SLOT)];
        let step = prop_oneof![
            3 => rest.prop_map(Step::Rest),
            4 => (0..COUNT, ahead).prop_map(|(index, ahead)| Step::Arm { index, ahead }),
            1 => (0..COUNT).prop_map(Step::Disarm),
            3 => Just(Step::Drain),
        ];
        prop::collection::vec(step, 1..60)
    }

    const COUNT: usize = 6;

    proptest! {
        /// Compares the wheel with a plain table of deadlines. The starting times include those
        /// shortly before the 32-bit tick wraps.
        #[test]
        fn agrees_with_a_plain_table_over_months(
            begin in prop_oneof![Just(0u32), any::<u32>(), u32::MAX - 400_000..u32::MAX],
            steps in steps(),
        ) {
            let mut hooks: Vec<Hook> = (0..COUNT).map(|_| Hook::new()).collect();
            let mut wheel = Wheel::new(Tick::at(begin));
            let mut now = u64::from(begin);
            // The expected time and the deadline of each entry.
            let mut table: [Option<(u64, u64)>; COUNT] = [None; COUNT];
            let arm = |wheel: &mut Wheel, hooks: &mut Vec<Hook>, index: usize, deadline: u64, now: u64| {
                let tick = wheel.arm(hooks, index as u32, Tick::at(deadline as u32), Tick::at(now as u32));
                let hand = now / u64::from(SLOT) + 1;
                let slot = deadline.div_ceil(u64::from(SLOT)).clamp(hand, hand + u64::from(SLOTS) - 1);
                let time = slot * u64::from(SLOT);
                assert_eq!(tick, Tick::at(time as u32));
                Some((time, deadline))
            };
            for step in steps {
                match step {
                    Step::Rest(time) => now += u64::from(time),
                    Step::Arm { index, ahead } => {
                        table[index] = arm(&mut wheel, &mut hooks, index, now + u64::from(ahead), now);
                    }
                    Step::Disarm(index) => {
                        wheel.disarm(&mut hooks, index as u32);
                        table[index] = None;
                    }
                    Step::Drain => {
                        let mut taken = vec![];
                        while let Some(index) = wheel.take_due(&mut hooks, Tick::at(now as u32)) {
                            let index = index as usize;
                            prop_assert!(!taken.contains(&index), "{index} was handed out twice");
                            let (time, deadline) = table[index].take().expect("it was armed");
                            prop_assert!(time <= now, "{index} was handed out early");
                            if deadline > now {
                                table[index] = arm(&mut wheel, &mut hooks, index, deadline, now);
                            }
                            taken.push(index);
                        }
                        for (index, entry) in table.iter().enumerate() {
                            prop_assert!(entry.is_none_or(|(time, _)| time > now), "{index} is late");
                        }
                        let first = table.iter().flatten().map(|(time, _)| *time).min();
                        prop_assert_eq!(wheel.next(), first.map(|time| Tick::at(time as u32)));
                    }
                }
                for (index, entry) in table.iter().enumerate() {
                    if let Some((time, _)) = entry && *time > now {
                        prop_assert!(hooks[index].covers(Tick::at(*time as u32)));
                        let early = Tick::at((*time as u32).wrapping_sub(SLOT + 1));
                        prop_assert!(hooks[index].time == DUE || !hooks[index].covers(early));
                    }
                }
            }
        }

        #[test]
        fn finds_the_next_entry_from_any_hand_position(hand in 0u32..SLOTS, slots in 0u32..SLOTS) {
            let now = Tick::at(hand * SLOT);
            let mut hooks = vec![Hook::new()];
            let mut wheel = Wheel::new(now);
            let deadline = now.milliseconds() + (slots + 1) * SLOT;
            wheel.arm(&mut hooks, 0, Tick::at(deadline), now);
            prop_assert_eq!(wheel.next(), Some(Tick::at(deadline)));
        }
    }

    /// The bit of an entry in the last slot of the turn is in the word of the hand, before the
    /// hand's bit.
    #[test]
    fn finds_an_entry_a_whole_turn_ahead_of_the_hand() {
        for hand in 0..SLOTS {
            let now = Tick::at(hand * SLOT);
            let mut hooks = vec![Hook::new()];
            let mut wheel = Wheel::new(now);
            let deadline = Tick::at(now.milliseconds() + SLOTS * SLOT);
            wheel.arm(&mut hooks, 0, deadline, now);
            assert_eq!(wheel.next(), Some(deadline), "hand at slot {hand}");
        }
    }
}
