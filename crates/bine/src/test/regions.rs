//! Finds the live regions in a page's markup and replaces their content.

/// Comment before a region's number, at the start and at the end of the region.
const BEGIN: &str = "<!--live ";
const END: &str = "<!--/live ";
/// End of both comments.
const CLOSE: &str = "-->";

/// Returns the regions of a page in the form of the stream's `have` parameter,
/// `0.a1b2c3d4e5f60718,1.0f..`. Empty if the page has no regions.
pub(super) fn listed(markup: &str) -> String {
    let ends = markup.split(END).skip(1).filter_map(|rest| rest.split_once(CLOSE));
    let pairs = ends.filter_map(|(end, _)| end.split_once(' '));
    pairs.map(|(number, hash)| format!("{number}.{hash}")).collect::<Vec<_>>().join(",")
}

/// Whether the tab's regions equal those of a new response, except for regions that render
/// differently each time (`now` and `again` are two responses to the same request).
pub(super) fn differ_only_in_unstable(shown: &str, now: &str, again: &str) -> bool {
    let [shown, now, again] = [shown, now, again].map(|of| of.split(',').collect::<Vec<_>>());
    shown.len() == now.len()
        && now.len() == again.len()
        && (0..now.len()).all(|place| shown[place] == now[place] || now[place] != again[place])
}

/// Replaces the markup of a region. Returns false if the page does not contain the region.
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
    fn replaces_region_and_its_hash() {
        let mut page =
            "a<!--live 0-->b<!--/live 0 0f--><!--live 10-->c<!--/live 10 1f-->d".to_owned();
        assert_eq!(listed(&page), "0.0f,10.1f");
        assert!(patch(&mut page, "10", "2f", "<p>\n"));
        assert!(patch(&mut page, "0", "3f", ""));
        assert_eq!(page, "a<!--live 0--><!--/live 0 3f--><!--live 10--><p>\n<!--/live 10 2f-->d");
        assert_eq!(listed(&page), "0.3f,10.2f");
        assert!(!patch(&mut page, "1", "4f", "e"));
    }

    #[test]
    fn ignores_regions_that_differ_in_each_response() {
        assert!(differ_only_in_unstable("0.a,1.b", "0.a,1.c", "0.a,1.d"));
        assert!(!differ_only_in_unstable("0.a,1.b", "0.a,1.c", "0.a,1.c"));
        assert!(!differ_only_in_unstable("0.a,1.b", "0.a,1.c", "0.a"));
        assert!(!differ_only_in_unstable("0.a", "", ""));
    }

    #[test]
    fn finds_no_regions_in_ordinary_markup() {
        assert_eq!(listed("<p>live</p><!-- live 0 -->"), "");
    }
}
