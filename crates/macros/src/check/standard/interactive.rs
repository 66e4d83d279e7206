//! Examples for interactive elements (HTML 4.11).

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        anchor: "the-details-element",
        right: &[
            r#"<section><h1>Copying</h1><details open name="copy"><summary>"25%" <progress max="100" value="25"></progress></summary><dl><dt>Rate</dt><dd>"452 KB/s"</dd></dl></details></section>"#,
            r#"<details><summary><label for="fn">Name</label></summary><p><input id="fn" name="fn"></p></details>"#,
            r#"<details><summary>t</summary>"text"</details>"#,
        ],
        wrong: &[
            ("<details><p>t</p></details>", "`<details>` needs a `<summary>`"),
            (
                "<details><p>t</p><summary>s</summary></details>",
                "`<summary>` is out of order in `<details>`",
            ),
            (
                "<details><summary>a</summary><summary>b</summary></details>",
                "`<summary>` belongs in `<details>` only once",
            ),
            (
                "<p><details><summary>t</summary></details></p>",
                "`<details>` is not allowed in `<p>`",
            ),
            (
                r#"<a href="/"><details><summary>t</summary></details></a>"#,
                "`<details>` is not allowed inside `<a>`",
            ),
            (r#"<details open="true"><summary>t</summary></details>"#, "`open` takes no value"),
        ],
    },
    Page {
        anchor: "the-summary-element",
        right: &[
            "<details><summary>More <b>of it</b></summary></details>",
            "<details><summary><h2>Status</h2></summary><p>t</p></details>",
        ],
        wrong: &[
            (
                "<div><summary>t</summary></div>",
                "`<summary>` is not allowed in `<div>`: `<summary>` belongs in `<details>`",
            ),
            (
                "<details><summary><p>t</p></summary></details>",
                "`<p>` is not allowed in `<summary>`",
            ),
        ],
    },
    Page {
        anchor: "the-dialog-element",
        right: &[
            r#"<dialog open closedby="any"><h1>Add to wallet</h1><p><label for="amt">How many?</label> <input id="amt" type="number" min="0" step="0.01" value="100"></p><form method="dialog"><button>OK</button></form></dialog>"#,
            r#"<dialog id="d" closedby="closerequest"></dialog>"#,
        ],
        wrong: &[
            ("<p><dialog>t</dialog></p>", "`<dialog>` is not allowed in `<p>`"),
            (r#"<dialog open="open">t</dialog>"#, "`open` takes no value"),
            (r#"<dialog closedby="click">t</dialog>"#, "`closedby` takes"),
            ("<dialog><li>t</li></dialog>", "`<li>` is not allowed in `<dialog>`"),
        ],
    },
];
