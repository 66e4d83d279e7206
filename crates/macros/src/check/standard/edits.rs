//! Examples for edits (HTML 4.7).

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        anchor: "the-ins-element",
        right: &[
            "<aside><ins><p>I like fruit</p></ins></aside>",
            "<aside><ins>Apples are <em>tasty</em></ins> <ins>So are pears</ins></aside>",
            r#"<aside><ins datetime="2005-03-16 00:00Z" cite="/why"><p>t</p></ins></aside>"#,
            r#"<ol><li><ins datetime="2008-02-12">Bug 225</ins></li></ol>"#,
            "<p>a <ins>b</ins></p>",
        ],
        wrong: &[
            (
                "<p>a <ins><p>b</p></ins></p>",
                "`<p>` is not allowed in `<ins>`: it takes phrasing content",
            ),
            ("<ul><ins><li>t</li></ins></ul>", "`<ins>` is not allowed in `<ul>`"),
            ("<table><ins><tr></tr></ins></table>", "`<ins>` is not allowed in `<table>`"),
            (
                r#"<ins datetime="yesterday">t</ins>"#,
                "`datetime` takes a date, `2026-11-21`; a date and time with its zone",
            ),
            (r#"<ins datetime="2005-03-16T00:00">t</ins>"#, "`datetime` takes"),
            (r#"<ins date="2005-03-16">t</ins>"#, "`<ins>` has no attribute `date`"),
        ],
    },
    Page {
        anchor: "the-del-element",
        right: &[
            r#"<h1>To Do</h1><ul><li>Wash</li><li><del datetime="2009-10-11T01:25-07:00">Watch a film</del></li></ul>"#,
            "<h1>List of <del>fruits</del><ins>colors</ins></h1>",
            "<section><del><p>This was deleted</p></del></section>",
            r#"<table><thead><tr><th><del cite="/edits/r192">Verdict</del></th></tr></thead></table>"#,
        ],
        wrong: &[
            ("<p><del><div>t</div></del></p>", "`<div>` is not allowed in `<del>`"),
            ("<ol><del><li>t</li></del></ol>", "`<del>` is not allowed in `<ol>`"),
            (r#"<del datetime="2009-10">t</del>"#, "`datetime` takes"),
        ],
    },
];
