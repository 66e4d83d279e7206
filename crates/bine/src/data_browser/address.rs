//! The addresses of the data browser: parsed from a decoded path, and written for links.

use crate::percent_encoding::percent_encode;
use crate::store::RowId;

/// The path of the data browser.
pub(super) const ROOT: &str = "/_bine/data";

/// The patterns of its pages, and whether a page answers POST too.
pub(super) const PATTERNS: [(&str, bool); 8] = [
    ("", false),
    ("/style.css", false),
    ("/audit", false),
    ("/tables/{table}", false),
    ("/tables/{table}/csv", false),
    ("/tables/{table}/new", true),
    ("/tables/{table}/rows/{row}", true),
    ("/tables/{table}/rows/{row}/remove", true),
];

/// A page of the data browser. Whether its table exists is not known yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place<'p> {
    Tables,
    Style,
    Audit,
    Rows(&'p str),
    Csv(&'p str),
    NewRow(&'p str),
    Row(&'p str, RowId),
    Removal(&'p str, RowId),
}

impl<'p> Place<'p> {
    /// The page at a decoded path.
    pub(super) fn of(path: &'p str) -> Option<Self> {
        let parts: Vec<&str> = path.strip_prefix(ROOT)?.split('/').skip(1).collect();
        Some(match parts[..] {
            [] | [""] => Self::Tables,
            ["style.css"] => Self::Style,
            ["audit"] => Self::Audit,
            ["tables", table] => Self::Rows(table),
            ["tables", table, "csv"] => Self::Csv(table),
            ["tables", table, "new"] => Self::NewRow(table),
            ["tables", table, "rows", id] => Self::Row(table, id.parse().ok()?),
            ["tables", table, "rows", id, "remove"] => Self::Removal(table, id.parse().ok()?),
            _ => return None,
        })
    }

    /// Whether the page answers POST too.
    pub(super) const fn has_form(self) -> bool {
        matches!(self, Self::NewRow(_) | Self::Row(..) | Self::Removal(..))
    }

    /// The address of the page.
    pub(super) fn address(self) -> String {
        let table = |table: &str| format!("{ROOT}/tables/{}", percent_encode(table));
        match self {
            Self::Tables => ROOT.to_owned(),
            Self::Style => format!("{ROOT}/style.css"),
            Self::Audit => format!("{ROOT}/audit"),
            Self::Rows(name) => table(name),
            Self::Csv(name) => format!("{}/csv", table(name)),
            Self::NewRow(name) => format!("{}/new", table(name)),
            Self::Row(name, id) => format!("{}/rows/{id}", table(name)),
            Self::Removal(name, id) => format!("{}/rows/{id}/remove", table(name)),
        }
    }
}

/// Appends a query of these names and values to an address. Empty values are omitted.
pub(super) fn with_query(address: &str, pairs: &[(&str, &str)]) -> String {
    let given = pairs.iter().filter(|(_, value)| !value.is_empty());
    let written = given.map(|(name, value)| format!("{name}={}", percent_encode(value)));
    let query = written.collect::<Vec<_>>().join("&");
    if query.is_empty() { address.to_owned() } else { format!("{address}?{query}") }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn parses_the_addresses_that_it_writes() {
        let id = RowId::from_number(0x0193_f9a0_4c5e_7b3a_9c1d_5e6f_7081_9203);
        let places = [
            Place::Tables,
            Place::Style,
            Place::Audit,
            Place::Rows("note"),
            Place::Csv("note"),
            Place::NewRow("note"),
            Place::Row("note", id),
            Place::Removal("note", id),
        ];
        for (place, (pattern, has_form)) in places.into_iter().zip(PATTERNS) {
            let address = place.address();
            assert_eq!(Place::of(&address), Some(place));
            let listed = pattern.replace("{table}", "note").replace("{row}", &id.to_string());
            assert_eq!((address, place.has_form()), (format!("{ROOT}{listed}"), has_form));
        }
        assert_eq!(Place::of("/_bine/data/"), Some(Place::Tables));
        for other in ["/_bine/dat", "/_bine/data/x", "/_bine/data/tables/a/rows/7"] {
            assert_eq!(Place::of(other), None, "{other}");
        }
    }

    #[test]
    fn encodes_the_values_of_a_query() {
        assert_eq!(with_query("/a", &[("b", "c&d"), ("e", ""), ("f", "1")]), "/a?b=c%26d&f=1");
        assert_eq!(with_query("/a", &[("b", "")]), "/a");
    }
}
