//! Extracts links, form fields and images from a page, without parsing its elements.

/// The links and fields of a page, found in one pass over its bytes. Empty for a response that is
/// not a page.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct PageSeen {
    /// The addresses of the images, with repetitions.
    pub(crate) images: Vec<String>,
    /// Ids of the linked items.
    pub(crate) items: Vec<String>,
    /// Ids of items with a link to buy at once.
    pub(crate) buyable: Vec<String>,
    /// Ids of users.
    pub(crate) users: Vec<String>,
    /// Categories by their names in addresses, linked or offered as choices.
    pub(crate) categories: Vec<String>,
    /// Regions, likewise.
    pub(crate) regions: Vec<String>,
    /// Addresses of searches in one category of one region.
    pub(crate) local_searches: Vec<String>,
    /// The address of the next page of a search.
    pub(crate) next: Option<String>,
    /// The token in forms for logged-in users.
    pub(crate) pass: Option<String>,
    /// The smallest number that the form accepts: a bid.
    pub(crate) least: Option<u64>,
}

impl PageSeen {
    /// Reads the attributes of the page, which must use double quotes.
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
                // The visitor has seen the previous page already.
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

/// An item has several links in a row; they count once.
fn add(to: &mut Vec<String>, id: &str) {
    if to.last().is_none_or(|last| last != id) {
        to.push(id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_links_fields_and_images() {
        let page = br#"<img src="/logo.png" alt="a"><a href="/items/0a">1</a> <a href="/items/0a/bids">2</a>
            <a href="/items/0b/buy"><img src="/buy.png" alt=""></a> <a href="/users/0c">u</a><a href="/">h</a>
            <a href="/categories/coins">c</a><a href="/regions/oslo">r</a><a href="/regions/oslo/coins?page=1">l</a>
            <a rel="prev" href="/categories/gone?page=1">less</a>
            <a rel="next" href="/categories/coins?page=2">more</a>
            <input type="hidden" name="pass" value="p.q"><input type="number" name="amount" min="12" required>
            <button name="category" value="stamps">S</button>"#;
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let expected = PageSeen {
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
        assert_eq!(PageSeen::read(page), expected);
    }

    #[test]
    fn skips_truncated_and_invalid_values() {
        let seen =
            PageSeen::read(b"<a href=\"/items/\xff\"><a href=\"/items/1\"><a href=\"/items/2");
        assert_eq!(seen.items, ["1"]);
        assert_eq!(PageSeen::read(b""), PageSeen::default());
    }
}
