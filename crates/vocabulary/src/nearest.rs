//! Decides which name was meant by one that does not exist.

/// Longer words than this have no nearest name: no name of a standard is as long.
const LONGEST: usize = 64;

/// The name that a misspelled word most likely stands for, if one is near enough: a third of its letters may be
/// wrong, and of a short word one. A letter is wrong if it is missing, too many, another, or changed places with its
/// neighbor; case is not looked at. Of names that are equally near, the first.
pub fn nearest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best = None;
    let mut cutoff = cutoff(word);
    for name in among {
        let Some(distance) = distance(word.as_bytes(), name.as_bytes(), cutoff) else { continue };
        if distance == 0 {
            return Some(name);
        }
        // Only what is nearer still is looked for.
        (best, cutoff) = (Some(name), distance - 1);
    }
    best
}

/// How many letters of a word may be wrong; never all of them.
fn cutoff(word: &str) -> usize {
    (word.len() / 3).max(1).min(word.len().saturating_sub(1))
}

/// How many letters differ, unless it is more than the cut-off. (Optimal string alignment, the rows of its matrix
/// one after another.)
fn distance(word: &[u8], name: &[u8], cutoff: usize) -> Option<usize> {
    if word.is_empty()
        || word.len().max(name.len()) > LONGEST
        || word.len().abs_diff(name.len()) > cutoff
    {
        return None;
    }
    let (mut before, mut above, mut row) = ([0; LONGEST + 1], [0; LONGEST + 1], [0; LONGEST + 1]);
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
        // The least of a row is at most one more than that of the row above; so not even an exchange, which skips
        // a row and costs one, comes back below the cut-off.
        if least > cutoff {
            return None;
        }
        (before, above, row) = (above, row, before);
    }
    let distance = above[name.len()];
    (distance <= cutoff).then_some(distance)
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::{cutoff, nearest};
    use crate::{element, elements, properties};

    #[track_caller]
    fn check<'a>(word: &str, among: impl IntoIterator<Item = &'a str>, meant: Option<&str>) {
        assert_eq!(nearest(word, among), meant, "{word}");
    }

    #[test]
    fn what_was_meant_is_found_in_the_tables() {
        let a = element("a").expect("a name of the standard");
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
    fn of_a_short_word_one_letter_may_be_wrong_and_of_none_nothing() {
        check("ab", ["b"], Some("b"));
        check("ab", ["cd"], None);
        check("a", ["b", "ab"], None);
        check("a", ["b", "A"], Some("A"));
        check("", ["a", ""], None);
    }

    #[test]
    fn the_nearest_wins_and_of_equals_the_first() {
        check("colr", ["cols", "color", "col"], Some("cols"));
        check("Viewbox", ["viewBos", "viewBox"], Some("viewBox"));
    }

    /// The whole matrix, as the definition has it.
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
        fn the_nearest_is_within_the_cutoff_and_nothing_is_nearer(
            word in "[a-dA-D-]{1,12}",
            names in proptest::collection::vec("[a-d-]{0,12}", 0..8),
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let least = names.iter().map(|name| plain_distance(&word, name)).min();
            match nearest(&word, names.iter().copied()) {
                Some(name) => {
                    let distance = plain_distance(&word, name);
                    prop_assert!(distance <= cutoff(&word));
                    prop_assert_eq!(Some(distance), least);
                }
                None => prop_assert!(least.is_none_or(|least| least > cutoff(&word))),
            }
        }

        #[test]
        fn any_text_has_an_answer(word in any::<String>(), name in any::<String>()) {
            let found = nearest(&word, [name.as_str()]);
            prop_assert!(found.is_none_or(|found| found == name));
        }
    }
}
