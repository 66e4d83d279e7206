//! Decides which name was perhaps meant by one that is not known.

/// The one of `known` that is most like `name`, if one is.
pub(crate) fn nearest<'k>(known: impl Iterator<Item = &'k str>, name: &str) -> Option<&'k str> {
    // The distance takes time with the product of the lengths, and no name of ours is long.
    if name.len() > 64 {
        return None;
    }
    let near = known.map(|known| (distance(known, name), known)).min_by_key(|(far, _)| *far);
    near.filter(|(far, _)| *far <= 3).map(|(_, known)| known)
}

/// How many letters must be put in, taken out or changed to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (place, letter) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = place + 1;
        for (column, wanted) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *wanted);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
