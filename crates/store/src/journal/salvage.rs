//! Reading a damaged segment: recovers every record that is intact.

use super::group::{GROUP_HEADER_LENGTH, MAX_GROUP_LENGTH, MIN_RECORD_LENGTH, Records};
use super::segment::{BadGroup, Segment, Step, Torn, Verdict};
use super::{Damage, Error, Sequence};

/// An event during a scan of a segment, in order.
pub(super) enum Salvaged<'b> {
    /// An intact record.
    Record(Sequence, &'b [u8]),
    /// The records before this number are lost: an earlier repair recorded the gap, or an unknown
    /// number of records is lost, below this bound.
    Lost(Sequence),
    /// A corrupt part.
    Damaged(Damage),
    /// The segment ends here with a group that was never durable.
    Torn(Torn),
}

/// Reads a segment to its end, across corrupt parts.
///
/// # Errors
///
/// [`Error::Disk`] if the disk cannot be read, and the errors of `receive`.
pub(super) fn salvage(
    segment: &mut Segment,
    following: Option<Sequence>,
    receive: &mut dyn FnMut(Salvaged<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    while following.is_none_or(|first| segment.next() < first) {
        let file = segment.name().to_owned();
        let (at, next) = (segment.at(), segment.next());
        let bad = match segment.step()? {
            Step::Group(records) => {
                for (sequence, record) in records {
                    receive(Salvaged::Record(sequence, record))?;
                }
                continue;
            }
            Step::Lost(first) => {
                receive(Salvaged::Lost(first))?;
                continue;
            }
            Step::End => {
                if let Some(first) = following {
                    let (what, records) = ("records are missing here", Some(next..=first - 1));
                    receive(Salvaged::Damaged(Damage { file, offset: at, records, what }))?;
                }
                return Ok(());
            }
            Step::BadGroup(bad) => bad,
        };
        match segment.judge(&bad, following)? {
            Verdict::Torn(torn) => return receive(Salvaged::Torn(torn)),
            Verdict::Damaged(damage) => receive(Salvaged::Damaged(damage))?,
        }
        match skip_corrupt(segment, &bad, receive)? {
            None => {}
            Some(_) if following.is_some() => return Ok(()),
            Some(beyond) => return receive(Salvaged::Lost(beyond)),
        }
    }
    Ok(())
}

/// Recovers the intact records of a bad group and moves to the next group. Without a next group,
/// returns a number above all lost records.
fn skip_corrupt(
    segment: &mut Segment,
    bad: &BadGroup,
    receive: &mut dyn FnMut(Salvaged<'_>) -> Result<(), Error>,
) -> Result<Option<Sequence>, Error> {
    let (store, mut next) = (segment.head.store, segment.next());
    let mut next_group = segment.find_group(bad.at + GROUP_HEADER_LENGTH as u64)?;
    let end = next_group.map_or(segment.size(), |(at, _)| at);
    let room = end.saturating_sub(bad.at + GROUP_HEADER_LENGTH as u64).min(MAX_GROUP_LENGTH as u64)
        as usize;
    let first = bad.head.map_or(next, |head| head.first);
    let mut body = segment.body(bad.at, bad.head.map_or(room, |head| head.length.min(room)))?;
    if bad.head.is_none() {
        let written = body.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        body = &body[..written];
    }
    let mut records = Records::new(body, store, first);
    loop {
        for (sequence, record) in records.by_ref() {
            if sequence >= next {
                receive(Salvaged::Record(sequence, record))?;
                next = sequence + 1;
            }
        }
        if !records.skip_corrupt() {
            break;
        }
    }
    let unread = (body.len() - records.at()) / MIN_RECORD_LENGTH;
    let beyond = next.max(records.next_sequence() + unread as u64);
    while let Some((at, head)) = next_group {
        if head.first >= next {
            segment.resume(at, &head);
            if head.first > next {
                receive(Salvaged::Lost(head.first))?;
            }
            return Ok(None);
        }
        next_group = segment.find_group(at + GROUP_HEADER_LENGTH as u64)?;
    }
    Ok(Some(beyond))
}
