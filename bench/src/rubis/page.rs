//! Decides what a visitor sees on a page: what can be clicked, filled in and fetched, without a tree of its elements.

/// What the auction's page showed. Every page is one pass over its bytes; what is no page shows nothing.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct PageSeen {
    /// The addresses of its images, each as often as it stands there.
    pub(crate) images: Vec<String>,
    /// Ids of the items that it leads to.
    pub(crate) items: Vec<String>,
    /// Those of them that can be bought at once.
    pub(crate) buyable: Vec<String>,
    /// Ids of users.
    pub(crate) users: Vec<String>,
    /// Categories, by the names that addresses have for them: those that it leads to, or lets one choose.
    pub(crate) categories: Vec<String>,
    /// Regions, likewise.
    pub(crate) regions: Vec<String>,
    /// Where the search in one category of one region is.
    pub(crate) local_searches: Vec<String>,
    /// Where the search goes on.
    pub(crate) next: Option<String>,
    /// What the form of somebody who has logged in brings along.
    pub(crate) pass: Option<String>,
    /// The smallest number that the form takes: a bid's.
    pub(crate) least: Option<u64>,
}

impl PageSeen {
    /// Looks at the attributes of the page, which stand in double quotes.
    pub(crate) fn read(page: &[u8]) -> Self {
        let mut seen = Self::default();
        let (mut rest, mut field) = (page, "");
        while let Some(at) = rest.windows(2).position(|two| two == b"=\"") {
            let before = &rest[..at];
            let begin = before.iter().rposition(|byte| !byte.is_ascii_lowercase());
            let name = &before[begin.map_or(0, |at| at + 1)..];
            let value = &rest[at + 2..];
            let Some(end) = value.iter().position(|byte| *byte == b'"') else { break };
            rest = &value[end + 1..];
            let Ok(value) = std::str::from_utf8(&value[..end]) else { continue };
            match name {
                b"name" | b"rel" => field = value,
                b"src" => seen.images.push(value.to_owned()),
                b"href" if field == "next" => {
                    seen.next = Some(value.to_owned());
                    field = "";
                }
                // Whoever came from there goes on.
                b"href" if field == "prev" => field = "",
                b"href" => seen.follow(value),
                b"min" if field == "amount" => seen.least = value.parse().ok(),
                b"value" if field == "pass" => seen.pass = Some(value.to_owned()),
                b"value" if field == "category" => seen.categories.push(value.to_owned()),
                b"value" if field == "region" => seen.regions.push(value.to_owned()),
                _ => {}
            }
        }
        seen
    }

    fn follow(&mut self, address: &str) {
        let path = address.split_once('?').map_or(address, |(path, _)| path);
        let mut parts = path.split('/').skip(1);
        let [kind, id, rest] = [parts.next(), parts.next(), parts.next()];
        let (Some(kind), Some(id)) = (kind, id) else { return };
        match (kind, rest) {
            ("items", Some("buy")) => add(&mut self.buyable, id),
            ("items", _) => add(&mut self.items, id),
            ("users", _) => add(&mut self.users, id),
            ("categories", None) => add(&mut self.categories, id),
            ("regions", None) => add(&mut self.regions, id),
            ("regions", Some(_)) => add(&mut self.local_searches, path),
            _ => {}
        }
    }
}

/// One item has several links, which stand together.
fn add(to: &mut Vec<String>, id: &str) {
    if to.last().is_none_or(|last| last != id) {
        to.push(id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_clicked_filled_in_and_fetched_is_seen() {
        let page = br#"<img src="/logo.png" alt="a"><a href="/items/0a">1</a> <a href="/items/0a/bids">2</a>
            <a href="/items/0b/buy"><img src="/buy.png" alt=""></a> <a href="/users/0c">u</a><a href="/">h</a>
            <a href="/categories/coins">c</a><a href="/regions/oslo">r</a><a href="/regions/oslo/coins?page=1">l</a>
            <a rel="prev" href="/categories/gone?page=1">less</a>
            <a rel="next" href="/categories/coins?page=2">more</a>
            <input type="hidden" name="pass" value="p.q"><input type="number" name="amount" min="12" required>
            <button name="category" value="stamps">S</button>"#;
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let wanted = PageSeen {
            images: texts(&["/logo.png", "/buy.png"]),
            items: texts(&["0a"]),
            buyable: texts(&["0b"]),
            users: texts(&["0c"]),
            categories: texts(&["coins", "stamps"]),
            regions: texts(&["oslo"]),
            local_searches: texts(&["/regions/oslo/coins"]),
            next: Some("/categories/coins?page=2".to_owned()),
            pass: Some("p.q".to_owned()),
            least: Some(12),
        };
        assert_eq!(PageSeen::read(page), wanted);
    }

    #[test]
    fn what_is_cut_or_no_text_is_left_out() {
        let seen =
            PageSeen::read(b"<a href=\"/items/\xff\"><a href=\"/items/1\"><a href=\"/items/2");
        assert_eq!(seen.items, ["1"]);
        assert_eq!(PageSeen::read(b""), PageSeen::default());
    }
}
