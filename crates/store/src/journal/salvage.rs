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

#[cfg(test)]
mod tests {
    use super::super::example::Example;
    use super::super::format::HEADER_LENGTH;
    use super::*;

    /// The events of a salvage, and the number of the next record after it.
    fn events(example: &Example, following: Option<Sequence>) -> (Vec<String>, Sequence) {
        let mut segment = example.open();
        let mut events = Vec::new();
        salvage(&mut segment, following, &mut |event| {
            events.push(match event {
                Salvaged::Record(sequence, record) => {
                    format!("{sequence} {}", String::from_utf8_lossy(record))
                }
                Salvaged::Lost(first) => format!("lost before {first}"),
                Salvaged::Damaged(damage) => {
                    damage.to_string().split_once(" is ").unwrap().1.to_owned()
                }
                Salvaged::Torn(torn) => format!("torn at {} after {}", torn.offset, torn.last),
            });
            Ok(())
        })
        .unwrap();
        (events, segment.next())
    }

    /// Groups of three records, of one, and of one.
    fn example() -> Example {
        Example::new(1).group(1, 0, &[b"one", b"two", b"three"]).group(4, 3, &[b"four"]).group(
            5,
            4,
            &[b"five"],
        )
    }

    const MISMATCH: &str = "a group's records do not match their checksum";

    #[test]
    fn passes_on_each_intact_record() {
        let all = ["1 one", "2 two", "3 three", "4 four", "5 five"];
        assert_eq!(events(&example(), None), (all.map(str::to_owned).to_vec(), 6));
        assert_eq!(events(&example(), Some(6)), (all.map(str::to_owned).to_vec(), 6));
        // No record after the first one of the next segment is read.
        assert_eq!(
            events(&example(), Some(4)),
            (all[..3].iter().map(|text| (*text).to_owned()).collect(), 4)
        );
        let (found, _) = events(&example(), Some(9));
        assert_eq!(found[5], "damaged at byte 272: records are missing here (records 6 to 8)");
        let gap = Example::new(1).group(1, 0, &[b"one"]).group(7, 0, &[]).group(7, 0, &[b"seven"]);
        assert_eq!(events(&gap, None).0, ["1 one", "lost before 7", "7 seven"]);
        let torn = example().zero(262..272);
        assert_eq!(events(&torn, None).0[4..], ["torn at 208 after 4"]);
    }

    #[test]
    fn recovers_the_records_around_a_damaged_one() {
        let records = HEADER_LENGTH + GROUP_HEADER_LENGTH;
        let damage = format!("damaged at byte 32: {MISMATCH} (records 1 to 3)");
        for (number, kept) in [
            (0, &["2 two", "3 three"][..]),
            (1, &["1 one", "3 three"]),
            // Only the next group shows that there was a third one.
            (2, &["1 one", "2 two", "lost before 4"]),
        ] {
            // The content of the record, 16 bytes after its beginning.
            let damaged = example().flip(records + 24 * number + 17);
            let expected = [&[&*damage], kept, &["4 four", "5 five"]].concat();
            let (found, next) = events(&damaged, None);
            assert_eq!((found, next), (expected.iter().map(ToString::to_string).collect(), 6));
        }
        // A length that is out of range hides the records after it.
        let damaged = example().flip(records + 24 + 1);
        let expected = [&damage, "1 one", "lost before 4", "4 four", "5 five"];
        assert_eq!(events(&damaged, None).0, expected);
    }

    #[test]
    fn recovers_the_records_of_a_group_without_a_head() {
        let damage = "damaged at byte 32: a group's head is not whole (records 1 to 3)";
        let expected = [damage, "1 one", "2 two", "3 three", "4 four", "5 five"];
        assert_eq!(events(&example().flip(40), None).0, expected);
        // The last group has no successor, and its length is unknown.
        let last = example().groups[2];
        let damage = "damaged at byte 208: a group's head is not whole (records from 5)";
        let damaged = example().flip(last + 8).rest(&[0; 500]);
        let (found, _) = events(&damaged, None);
        assert_eq!(found[4..], [damage, "5 five", "lost before 6"]);
        let (found, _) = events(&damaged, Some(6));
        assert_eq!(
            found[4..],
            ["damaged at byte 208: a group's head is not whole (record 5)", "5 five"]
        );
        // Two groups in turn.
        let damaged = example().flip(40).flip(example().groups[1] + 8);
        let damage = "damaged at byte 32: a group's head is not whole (records 1 to 4)";
        let (found, _) = events(&damaged, None);
        assert_eq!(found, [damage, "1 one", "2 two", "3 three", "lost before 5", "5 five"]);
    }

    #[test]
    fn bounds_the_number_of_records_that_are_lost_at_the_end() {
        // 144 bytes without a record that can be read, which is room for six records.
        let noise = Example::new(7).rest(&[0x55; GROUP_HEADER_LENGTH + 144]);
        let damage = "damaged at byte 32: a group's head is not whole (records from 7)";
        assert_eq!(events(&noise, None).0, [damage, "lost before 13"]);
        let noise = Example::new(7).rest(&[0x55; GROUP_HEADER_LENGTH + 143]);
        assert_eq!(events(&noise, None).0, [damage, "lost before 12"]);
        // Two of three records are read.
        let last = Example::new(1).group(1, 0, &[b"one", b"two", b"three"]);
        let damaged = last.clone().flip(HEADER_LENGTH + GROUP_HEADER_LENGTH + 49);
        let damage = format!("damaged at byte 32: {MISMATCH} (records from 1)");
        assert_eq!(events(&damaged, None).0, [&damage, "1 one", "2 two", "lost before 4"]);
        // The length of the third is out of range, and its 24 bytes have room for one.
        assert_eq!(
            events(&damaged.flip(HEADER_LENGTH + GROUP_HEADER_LENGTH + 50), None).0,
            [&damage, "1 one", "2 two", "lost before 4"]
        );
    }

    #[test]
    fn passes_over_groups_of_lower_numbers() {
        // Copies of the first two groups, as a disk has them that returns older contents.
        let again = Example::new(1)
            .group(1, 0, &[b"one"])
            .group(2, 0, &[b"two"])
            .group(1, 0, &[b"one"])
            .group(2, 0, &[b"two"])
            .group(3, 0, &[b"three"]);
        let damage =
            "damaged at byte 160: a group's numbers do not follow the ones before it (record 3)";
        assert_eq!(events(&again, None).0, ["1 one", "2 two", damage, "3 three"]);
    }
}
