//! Examples for tables (HTML 4.9).

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        anchor: "the-table-element",
        right: &[
            "<table><caption>Sudoku</caption><colgroup><col><col></colgroup><tbody><tr><td>1</td><td>2</td></tr></tbody></table>",
            "<table><thead><tr><th>a</th></tr></thead><tbody></tbody><tbody></tbody><tfoot></tfoot></table>",
            r#"<table><tr><th>a</th><td>b</td></tr>{for row in rows { <tr><td>{row}</td></tr> }}<script src="a.js"></script></table>"#,
            "<figure><figcaption>t</figcaption><table></table></figure>",
        ],
        wrong: &[
            (
                "<table><td>t</td></table>",
                "`<td>` is not allowed in `<table>`: `<td>` belongs in `<template>`, `<tr>`",
            ),
            (r#"<table>"text"</table>"#, "no text is allowed in `<table>`"),
            ("<p><table></table></p>", "`<table>` is not allowed in `<p>`"),
            (
                "<table><tbody></tbody><thead></thead></table>",
                "`<thead>` is out of order in `<table>`",
            ),
            (
                r#"<table border="1"></table>"#,
                "`border` is no longer part of HTML: use CSS `border`",
            ),
            (r#"<table cellpadding="0"></table>"#, "`cellpadding` is no longer part of HTML"),
            (
                r#"<table summary="t"></table>"#,
                "`summary` is no longer part of HTML: use `caption`",
            ),
            ("<table><form></form></table>", "`<form>` is not allowed in `<table>`"),
        ],
    },
    Page {
        anchor: "the-caption-element",
        right: &[
            "<table><caption><strong>Sides</strong><p>Given in the second column</p><details><summary>Help</summary><p>t</p></details></caption></table>",
        ],
        wrong: &[
            (
                "<table><caption>a</caption><caption>b</caption></table>",
                "`<caption>` belongs in `<table>` only once",
            ),
            (
                "<table><tr></tr><caption>a</caption></table>",
                "`<caption>` is out of order in `<table>`: the order is `<caption>`, then `<colgroup>`",
            ),
            (
                "<table><caption><div><table></table></div></caption></table>",
                "`<table>` is not allowed inside `<caption>`",
            ),
            (
                "<div><caption>t</caption></div>",
                "`<caption>` is not allowed in `<div>`: `<caption>` belongs in `<table>`",
            ),
            (
                r#"<table><caption align="top">t</caption></table>"#,
                "`align` is no longer part of HTML",
            ),
        ],
    },
    Page {
        anchor: "the-colgroup-element",
        right: &[
            r#"<table><colgroup><col></colgroup><colgroup span="3"></colgroup><colgroup><template></template></colgroup></table>"#,
        ],
        wrong: &[
            (
                r#"<table><colgroup span="0"></colgroup></table>"#,
                "`span` takes a whole number from 1 on",
            ),
            (
                "<table><colgroup><td>t</td></colgroup></table>",
                "`<td>` is not allowed in `<colgroup>`",
            ),
            (r#"<table><colgroup>"text"</colgroup></table>"#, "no text is allowed in `<colgroup>`"),
            (
                "<table><tbody></tbody><colgroup></colgroup></table>",
                "`<colgroup>` is out of order in `<table>`",
            ),
            ("<tr><colgroup></colgroup></tr>", "`<colgroup>` is not allowed in `<tr>`"),
        ],
    },
    Page {
        anchor: "the-col-element",
        right: &[r#"<table><colgroup><col span="2" class="a"><col></colgroup></table>"#],
        wrong: &[
            (
                "<table><col></table>",
                "`<col>` is not allowed in `<table>`: `<col>` belongs in `<colgroup>`",
            ),
            (
                r#"<colgroup><col width="10"></colgroup>"#,
                "`width` is no longer part of HTML: use CSS `width`",
            ),
            (r#"<colgroup><col span="two"></colgroup>"#, "`span` takes a whole number from 1 on"),
        ],
    },
    Page {
        anchor: "the-tbody-element",
        right: &[
            "<table><tbody><tr><td>t</td></tr><template></template></tbody><tbody></tbody></table>",
        ],
        wrong: &[
            ("<tbody><td>t</td></tbody>", "`<td>` is not allowed in `<tbody>`"),
            (r#"<tbody>"text"</tbody>"#, "no text is allowed in `<tbody>`"),
            ("<div><tbody></tbody></div>", "`<tbody>` is not allowed in `<div>`"),
            (
                "<table><tfoot></tfoot><tbody></tbody></table>",
                "`<tbody>` is out of order in `<table>`",
            ),
        ],
    },
    Page {
        anchor: "the-thead-element",
        right: &[
            r#"<table><caption>t</caption><thead><tr><th><label for="e1">Name</label></th></tr></thead><tbody><tr><td><input id="e1"></td></tr></tbody></table>"#,
        ],
        wrong: &[
            (
                "<table><thead></thead><thead></thead></table>",
                "`<thead>` belongs in `<table>` only once",
            ),
            ("<thead><th>t</th></thead>", "`<th>` is not allowed in `<thead>`"),
            ("<tr><thead></thead></tr>", "`<thead>` is not allowed in `<tr>`"),
        ],
    },
    Page {
        anchor: "the-tfoot-element",
        right: &["<table><tbody></tbody><tfoot><tr><td>t</td></tr></tfoot></table>"],
        wrong: &[
            (
                "<table><tfoot></tfoot><tfoot></tfoot></table>",
                "`<tfoot>` belongs in `<table>` only once",
            ),
            ("<table><tfoot></tfoot><tr></tr></table>", "`<tr>` is out of order in `<table>`"),
            ("<tfoot><p>t</p></tfoot>", "`<p>` is not allowed in `<tfoot>`"),
        ],
    },
    Page {
        anchor: "the-tr-element",
        right: &["<table><tr><th>a</th><td>b</td><template></template></tr><tr></tr></table>"],
        wrong: &[
            (
                "<div><tr></tr></div>",
                "`<tr>` is not allowed in `<div>`: `<tr>` belongs in `<table>`",
            ),
            (r#"<tr>"text"</tr>"#, "no text is allowed in `<tr>`"),
            ("<tr><div>t</div></tr>", "`<div>` is not allowed in `<tr>`"),
            ("<tr><tr></tr></tr>", "`<tr>` is not allowed in `<tr>`"),
            (r#"<tr bgcolor="red"></tr>"#, "`bgcolor` is no longer part of HTML"),
        ],
    },
    Page {
        anchor: "the-td-element",
        right: &[
            r#"<table><tr><td colspan="2" rowspan="0" headers="a b">t</td><td><p>t</p><ul><li>t</li></ul></td></tr></table>"#,
            r#"<table><tr><td><input name="a"><output name="b"></output></td></tr></table>"#,
        ],
        wrong: &[
            (r#"<tr><td colspan="0">t</td></tr>"#, "`colspan` takes a whole number from 1 on"),
            (
                r#"<tr><td rowspan="-1">t</td></tr>"#,
                "`rowspan` takes a whole number that is not negative",
            ),
            (r#"<tr><td scope="row">t</td></tr>"#, "`scope` is no longer part of HTML: use `th`"),
            (r#"<tr><td abbr="t">t</td></tr>"#, "`abbr` is no longer part of HTML"),
            ("<tr><td nowrap>t</td></tr>", "`nowrap` is no longer part of HTML"),
            ("<p><td>t</td></p>", "`<td>` is not allowed in `<p>`"),
            (r#"<tr><td colpsan="2">t</td></tr>"#, "did you mean `colspan`?"),
        ],
    },
    Page {
        anchor: "the-th-element",
        right: &[
            r#"<table><thead><tr><th id="a" scope="col" abbr="M">Measurement</th></tr></thead><tbody><tr><th scope="rowgroup">Cats</th></tr><tr><th scope="row">Legs</th><td>4</td></tr></tbody></table>"#,
            "<tr><th><p>t</p></th></tr>",
        ],
        wrong: &[
            (
                "<tr><th><h2>t</h2></th></tr>",
                "`<h2>` is not allowed inside `<th>`, which allows no content that is heading",
            ),
            ("<tr><th><article>t</article></th></tr>", "`<article>` is not allowed inside `<th>`"),
            ("<tr><th><footer>t</footer></th></tr>", "`<footer>` is not allowed inside `<th>`"),
            (
                r#"<tr><th scope="column">t</th></tr>"#,
                "`scope` takes one of `col`, `colgroup`, `row`, `rowgroup`",
            ),
            ("<ul><th>t</th></ul>", "`<th>` is not allowed in `<ul>`"),
        ],
    },
];
