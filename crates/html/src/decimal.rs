//! Decides how an integer is spelled in decimal, without the formatting machinery.

use crate::writer::Writer;

/// The digits of the longest `u64` and a sign.
const LONGEST: usize = 21;

/// Writes `magnitude` in decimal, with a minus sign if `negative`.
#[inline]
pub(crate) fn write(writer: &mut Writer<'_>, negative: bool, magnitude: u64) {
    let mut buffer = [b'0'; LONGEST];
    let mut start = LONGEST;
    let mut rest = magnitude;
    // Two digits a division: dividing is what costs here.
    while rest >= 10 {
        let pair = (rest % 100) as u8;
        rest /= 100;
        start -= 2;
        buffer[start] += pair / 10;
        buffer[start + 1] += pair % 10;
    }
    if rest > 0 || start == LONGEST {
        start -= 1;
        buffer[start] += rest as u8;
    }
    if negative {
        start -= 1;
        buffer[start] = b'-';
    }
    writer.bytes(&buffer[start..]);
}
