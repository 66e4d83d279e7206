//! The name of an application: its rules, its title, and the nearest of several names.

/// The length of the longest name.
const MAX_LENGTH: usize = 40;
/// The number of letters to change between a name and the one that was meant.
const MAX_DISTANCE: usize = 2;

/// Checks the name of a new application, which is a part of its URL when its folder is in a site.
///
/// # Errors
///
/// A message with the rule.
pub(super) fn check(name: &str) -> Result<(), String> {
    let is_valid = (1..=MAX_LENGTH).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte)
        });
    if is_valid {
        return Ok(());
    }
    Err(format!(
        "`{name}` is no name of an application; it has 1 to {MAX_LENGTH} lower-case letters, digits, `-` and \
         `_`, and begins with a letter"
    ))
}

/// The title of an application with this valid name: `my-board` is `My board`.
pub(super) fn title(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_ascii_uppercase() + &rest.replace(['-', '_'], " ")
}

/// The known name that is nearest to `name`, if one is near.
pub(super) fn nearest<'k>(known: &[&'k str], name: &str) -> Option<&'k str> {
    // The time is proportional to the product of the lengths.
    if name.len() > MAX_LENGTH {
        return None;
    }
    let near = known.iter().map(|known| (distance(known, name), *known)).min()?;
    (near.0 <= MAX_DISTANCE).then_some(near.1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_names_that_fit_into_a_url() {
        for name in ["a", "board", "my-board_2"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for name in
            ["", "Board", "2board", "-a", "a b", "a/b", ".", "b.ard", "b\u{e9}", &"a".repeat(41)]
        {
            assert!(
                check(name).unwrap_err().starts_with(&format!("`{name}` is no name")),
                "{name}"
            );
        }
    }

    #[test]
    fn makes_a_title_of_a_name() {
        assert_eq!(title("board"), "Board");
        assert_eq!(title("my-new_board"), "My new board");
        assert_eq!(title("a"), "A");
    }

    #[test]
    fn finds_names_with_few_changes() {
        let known = ["board", "blank"];
        for (name, near) in [
            ("bord", Some("board")),
            ("blnak", Some("blank")),
            ("boards", Some("board")),
            ("shop", None),
            ("", None),
            ("lank", Some("blank")),
        ] {
            assert_eq!(nearest(&known, name), near, "{name}");
        }
        assert_eq!(nearest(&known, &"a".repeat(1000)), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
