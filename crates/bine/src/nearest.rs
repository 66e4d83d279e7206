//! Suggestions for misspelled names.

/// The name in `known` that is closest to `name`, if one is close enough.
pub(crate) fn nearest<'k>(known: impl Iterator<Item = &'k str>, name: &str) -> Option<&'k str> {
    // The time is proportional to the product of the lengths, and no known name is long.
    if name.len() > 64 {
        return None;
    }
    let near = known.map(|known| (distance(known, name), known)).min_by_key(|(far, _)| *far);
    near.filter(|(far, _)| *far <= 3).map(|(_, known)| known)
}

/// The Levenshtein distance: the number of letters to insert, remove or change.
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
