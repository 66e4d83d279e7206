//! Decides where the regions of a page are in its markup, and how one is replaced.

/// What stands before a region's number where it begins, and where it ends.
const BEGIN: &str = "<!--live ";
const END: &str = "<!--/live ";
/// What ends both.
const CLOSE: &str = "-->";

/// Which regions a page shows, as its stream is asked: `0.a1b2c3d4e5f60718,1.0f..`; nothing if it has none.
pub(super) fn shown(markup: &str) -> String {
    let ends = markup.split(END).skip(1).filter_map(|rest| rest.split_once(CLOSE));
    let pairs = ends.filter_map(|(end, _)| end.split_once(' '));
    pairs.map(|(number, hash)| format!("{number}.{hash}")).collect::<Vec<_>>().join(",")
}

/// Whether a page shows what it shows `now`, but for regions that are another each time they are made: those that are
/// another in `again` too.
pub(super) fn differ_as(shown: &str, now: &str, again: &str) -> bool {
    let [shown, now, again] = [shown, now, again].map(|of| of.split(',').collect::<Vec<_>>());
    shown.len() == now.len()
        && now.len() == again.len()
        && (0..now.len()).all(|place| shown[place] == now[place] || now[place] != again[place])
}

/// Puts other markup into a region. False: the page does not have it.
pub(super) fn patch(page: &mut String, number: &str, hash: &str, markup: &str) -> bool {
    let begin = format!("{BEGIN}{number}{CLOSE}");
    let Some(start) = page.find(&begin).map(|start| start + begin.len()) else { return false };
    let end = format!("{END}{number} ");
    let Some(end) = page[start..].find(&end).map(|end| start + end) else { return false };
    let Some(after) = page[end..].find(CLOSE).map(|after| end + after) else { return false };
    page.replace_range(start..after, &format!("{markup}{END}{number} {hash}"));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_replaced_with_its_hash() {
        let mut page =
            "a<!--live 0-->b<!--/live 0 0f--><!--live 10-->c<!--/live 10 1f-->d".to_owned();
        assert_eq!(shown(&page), "0.0f,10.1f");
        assert!(patch(&mut page, "10", "2f", "<p>\n"));
        assert!(patch(&mut page, "0", "3f", ""));
        assert_eq!(page, "a<!--live 0--><!--/live 0 3f--><!--live 10--><p>\n<!--/live 10 2f-->d");
        assert_eq!(shown(&page), "0.3f,10.2f");
        assert!(!patch(&mut page, "1", "4f", "e"));
    }

    #[test]
    fn a_region_that_is_another_each_time_is_like_any() {
        assert!(differ_as("0.a,1.b", "0.a,1.c", "0.a,1.d"));
        assert!(!differ_as("0.a,1.b", "0.a,1.c", "0.a,1.c"));
        assert!(!differ_as("0.a,1.b", "0.a,1.c", "0.a"));
        assert!(!differ_as("0.a", "", ""));
    }

    #[test]
    fn a_page_without_regions_shows_none() {
        assert_eq!(shown("<p>live</p><!-- live 0 -->"), "");
    }
}
