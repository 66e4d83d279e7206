//! The generated name of a visitor without a login: two friendly words.

use crate::text::Text;

/// The name of this seed, such as `Quiet Heron`. There are 4096 names, so two visitors may have the
/// same.
pub(super) fn name_of(seed: u16) -> Text {
    let place = usize::from(seed);
    let (first, second) = (MANNERS[place % 64], BEINGS[place / 64 % 64]);
    // At most 24 bytes, so that the text needs no allocation.
    let mut bytes = [0; 24];
    let length = first.len() + 1 + second.len();
    bytes[..first.len()].copy_from_slice(first.as_bytes());
    bytes[first.len()] = b' ';
    bytes[first.len() + 1..length].copy_from_slice(second.as_bytes());
    Text::from(str::from_utf8(&bytes[..length]).unwrap_or(first))
}

// Every word fits every other. No word refers to looks, faith, origin, politics or the body. A
// change of the list renames existing visitors.
#[rustfmt::skip]
const MANNERS: [&str; 64] = [
    "Amber", "Autumn", "Brave", "Bright", "Brisk", "Calm", "Candid", "Careful",
    "Cheerful", "Clear", "Clever", "Cozy", "Crisp", "Curious", "Daring", "Eager",
    "Early", "Earnest", "Fair", "Fleet", "Fresh", "Gentle", "Glad", "Golden",
    "Graceful", "Happy", "Hardy", "Honest", "Humble", "Jolly", "Joyful", "Keen",
    "Kind", "Lively", "Loyal", "Lucky", "Mellow", "Merry", "Mindful", "Modest",
    "Neat", "Nimble", "Noble", "Patient", "Peaceful", "Playful", "Polite", "Quick",
    "Quiet", "Radiant", "Ready", "Serene", "Silver", "Sincere", "Smiling", "Snowy",
    "Spry", "Steady", "Sunny", "Swift", "Tidy", "Tranquil", "Warm", "Wise",
];

#[rustfmt::skip]
const BEINGS: [&str; 64] = [
    "Acorn", "Avocet", "Beech", "Birch", "Bluebell", "Bunting", "Cedar", "Clover",
    "Crane", "Curlew", "Dolphin", "Dormouse", "Dove", "Egret", "Falcon", "Fern",
    "Finch", "Firefly", "Gannet", "Goldfinch", "Grebe", "Hare", "Harrier", "Heron",
    "Ibis", "Juniper", "Kestrel", "Kingfisher", "Lapwing", "Lark", "Linnet", "Lotus",
    "Lynx", "Magnolia", "Maple", "Marten", "Meadow", "Merlin", "Moose", "Nightingale",
    "Oak", "Oriole", "Osprey", "Otter", "Owl", "Petrel", "Plover", "Puffin",
    "Quail", "Raven", "Redwing", "Sandpiper", "Seal", "Skylark", "Sparrow", "Starling",
    "Stork", "Swan", "Tern", "Thistle", "Wagtail", "Warbler", "Willow", "Wren",
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_seed_has_a_distinct_short_name() {
        let names: HashSet<String> = (0..4096).map(|seed| name_of(seed).as_str().into()).collect();
        assert_eq!(names.len(), 4096);
        for name in &names {
            let words: Vec<&str> = name.split(' ').collect();
            assert!(name.is_ascii() && name.len() <= 24 && words.len() == 2, "{name}");
        }
        assert_eq!(name_of(48 + 23 * 64).as_str(), "Quiet Heron");
        assert_eq!(name_of(u16::MAX).as_str(), "Wise Wren");
    }
}
