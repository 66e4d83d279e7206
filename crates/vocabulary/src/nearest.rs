//! Suggestions for misspelled names.

/// The maximum length of a word. Names in the standards are shorter.
const MAX_LENGTH: usize = 64;

/// Returns the name that a misspelled word most likely means. At most a third of its letters may be
/// wrong, or one letter of a short word. A letter is wrong if it is missing, superfluous, replaced,
/// or swapped with its neighbor. The comparison ignores case. Among equally near names, the first
/// wins.
pub fn nearest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best = None;
    let mut max_distance = max_distance(word);
    for name in among {
        let Some(distance) = distance(word.as_bytes(), name.as_bytes(), max_distance) else {
            continue;
        };
        if distance == 0 {
            return Some(name);
        }
        // Continues with nearer names only.
        (best, max_distance) = (Some(name), distance - 1);
    }
    best
}

/// Returns how many letters of a word may be wrong. At least one letter must be right.
fn max_distance(word: &str) -> usize {
    (word.len() / 3).max(1).min(word.len().saturating_sub(1))
}

/// Returns how many letters differ, unless the number exceeds `max_distance` (optimal string
/// alignment, one row of the matrix at a time).
fn distance(word: &[u8], name: &[u8], max_distance: usize) -> Option<usize> {
    if word.is_empty()
        || word.len().max(name.len()) > MAX_LENGTH
        || word.len().abs_diff(name.len()) > max_distance
    {
        return None;
    }
    let mut before = [0; MAX_LENGTH + 1];
    let mut above = [0; MAX_LENGTH + 1];
    let mut row = [0; MAX_LENGTH + 1];
    for (place, cell) in above.iter_mut().enumerate() {
        *cell = place;
    }
    for (i, letter) in word.iter().enumerate() {
        row[0] = i + 1;
        let mut least = row[0];
        for (j, other) in name.iter().enumerate() {
            let same = letter.eq_ignore_ascii_case(other);
            let mut cost = (above[j + 1] + 1).min(row[j] + 1).min(above[j] + usize::from(!same));
            if i > 0
                && j > 0
                && letter.eq_ignore_ascii_case(&name[j - 1])
                && word[i - 1].eq_ignore_ascii_case(other)
            {
                cost = cost.min(before[j - 1] + 1);
            }
            row[j + 1] = cost;
            least = least.min(cost);
        }
        // The minimum of a row exceeds the minimum of the previous row by at most 1. So even a
        // swap, which skips a row and costs 1, cannot return below the limit.
        if least > max_distance {
            return None;
        }
        (before, above, row) = (above, row, before);
    }
    let distance = above[name.len()];
    (distance <= max_distance).then_some(distance)
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::{max_distance, nearest};
    use crate::{element, elements, properties};

    #[track_caller]
    fn check<'a>(word: &str, among: impl IntoIterator<Item = &'a str>, expected: Option<&str>) {
        assert_eq!(nearest(word, among), expected, "{word}");
    }

    #[test]
    fn finds_misspelled_names_in_tables() {
        let a = element("a").expect("a standard element");
        check("herf", a.attribute_names(), Some("href"));
        check("onClick", a.attribute_names(), Some("onclick"));
        check("aria-lable", a.attribute_names(), Some("aria-label"));
        let properties = || properties().iter().map(|property| property.name);
        check("colour", properties(), Some("color"));
        check("backgroud-color", properties(), Some("background-color"));
        check("dispaly", properties(), Some("display"));
        let elements = || elements().iter().map(|element| element.name);
        check("buton", elements(), Some("button"));
        check("secton", elements(), Some("section"));
        check("xylophone", elements(), None);
    }

    #[test]
    fn allows_one_wrong_letter_in_short_words() {
        check("ab", ["b"], Some("b"));
        check("ab", ["cd"], None);
        check("a", ["b", "ab"], None);
        check("a", ["b", "A"], Some("A"));
        check("", ["a", ""], None);
    }

    #[test]
    fn prefers_nearest_then_first() {
        check("colr", ["cols", "color", "col"], Some("cols"));
        check("Viewbox", ["viewBos", "viewBox"], Some("viewBox"));
    }

    /// The complete matrix, as in the definition.
    fn plain_distance(word: &str, name: &str) -> usize {
        let (a, b) = (word.to_ascii_lowercase(), name.to_ascii_lowercase());
        let (a, b) = (a.as_bytes(), b.as_bytes());
        let mut cost = std::vec![std::vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                cost[i][j] = if i == 0 || j == 0 {
                    i + j
                } else {
                    let mut least = (cost[i - 1][j] + 1).min(cost[i][j - 1] + 1);
                    least = least.min(cost[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]));
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        least = least.min(cost[i - 2][j - 2] + 1);
                    }
                    least
                };
            }
        }
        cost[a.len()][b.len()]
    }

    proptest! {
        #[test]
        fn result_is_nearest_and_within_the_limit(
            word in "[a-dA-D-]{1,12}",
            names in proptest::collection::vec("[a-d-]{0,12}", 0..8),
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let least = names.iter().map(|name| plain_distance(&word, name)).min();
            match nearest(&word, names.iter().copied()) {
                Some(name) => {
                    let distance = plain_distance(&word, name);
                    prop_assert!(distance <= max_distance(&word));
                    prop_assert_eq!(Some(distance), least);
                }
                None => prop_assert!(least.is_none_or(|least| least > max_distance(&word))),
            }
        }

        #[test]
        fn accepts_any_text(word in any::<String>(), name in any::<String>()) {
            let found = nearest(&word, [name.as_str()]);
            prop_assert!(found.is_none_or(|found| found == name));
        }
    }
}
