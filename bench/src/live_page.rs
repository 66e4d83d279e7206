//! The streams of live pages, as the script of a page requests them.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::peer::Peer;
use crate::tools::pause;

/// A page that reads recent commits is rendered once more within this time.
const SETTLED: Duration = Duration::from_millis(300);

/// The target of the stream of patches for a viewer that shows the current page at `path`.
pub(crate) fn stream_target(port: u16, path: &str) -> Result<String> {
    let mut peer = Peer::connect(port)?;
    let page = peer.get(path)?;
    let have = have(&String::from_utf8_lossy(page));
    ensure!(!have.is_empty(), "no live region at {path}");
    pause(SETTLED);
    Ok(format!("/_bine/live?page={}&have={have}", path.replace('/', "%2F")))
}

/// The regions of a page with their hashes, in the format of the script.
fn have(page: &str) -> String {
    let ends = page.split("<!--/live ").skip(1).filter_map(|rest| rest.split_once("-->"));
    ends.map(|(end, _)| end.replace(' ', ".")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_region_hashes_from_the_ends_of_regions() {
        let page =
            "<!--live 0--><p>a</p><!--/live 0 a1b2c3d4e5f60718--> <!--live 1--><!--/live 1 00-->";
        assert_eq!(have(page), "0.a1b2c3d4e5f60718,1.00");
        assert_eq!(have("<p>still</p>"), "");
    }
}
