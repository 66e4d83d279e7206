//! Integers in decimal, without `core::fmt`.

use core::mem::MaybeUninit;

/// The digits of the longest `u64` and a sign.
pub(crate) const LONGEST: usize = 21;

/// The numbers from 00 to 99. Division dominates the cost, so each division yields two digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Writes `magnitude` in decimal, with a minus sign if `negative`, and returns the length.
///
/// Branches select numbers of one and two digits. The processor predicts them well when numbers
/// fill a column, and later code does not wait for the length.
#[inline]
pub(crate) fn write(to: &mut [MaybeUninit<u8>; LONGEST], negative: bool, magnitude: u64) -> usize {
    let start = usize::from(negative);
    if negative {
        to[0].write(b'-');
    }
    if magnitude >= 100 {
        return write_long(to, start, magnitude);
    }
    if magnitude < 10 {
        to[start].write(b'0' + magnitude as u8);
        return start + 1;
    }
    to[start..start + 2].write_copy_of_slice(&PAIRS[magnitude as usize]);
    start + 2
}

/// Writes `magnitude`, which has three digits or more, from `start` on, and returns the end.
///
/// A separate cold function keeps the code for short numbers compact at each call.
#[cold]
#[inline(never)]
fn write_long(to: &mut [MaybeUninit<u8>; LONGEST], start: usize, magnitude: u64) -> usize {
    if magnitude < 1000 {
        let [tens, ones] = PAIRS[(magnitude % 100) as usize];
        let digits = [b'0' + (magnitude / 100) as u8, tens, ones];
        to[start..start + 3].write_copy_of_slice(&digits);
        return start + 3;
    }
    if magnitude < 10_000 {
        let [first, second] = PAIRS[(magnitude / 100) as usize];
        let [third, fourth] = PAIRS[(magnitude % 100) as usize];
        to[start..start + 4].write_copy_of_slice(&[first, second, third, fourth]);
        return start + 4;
    }
    // Writes from the last digit to the first.
    let length = magnitude.checked_ilog10().unwrap_or(0) as usize + 1;
    let (mut rest, mut end) = (magnitude, start + length);
    while rest >= 10 {
        let [tens, ones] = PAIRS[(rest % 100) as usize];
        rest /= 100;
        to[end - 2].write(tens);
        to[end - 1].write(ones);
        end -= 2;
    }
    if end > start {
        to[start].write(b'0' + rest as u8);
    }
    start + length
}
