//! Tests of the messages for invalid markup.

use crate::parse::parse;
use crate::sample::Sample;

/// Checks the faults in `source`: `expected` has a line for each, with the token and the message.
#[track_caller]
fn check(source: &str, expected: &str) {
    let sample = Sample::new(source);
    let mut faults = Vec::new();
    let nodes = parse(&sample.tokens, &mut faults);
    super::check(&nodes, &mut faults);
    let expected: Vec<&str> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(sample.report(&faults), expected.join("\n"), "{source}");
}

#[test]
fn accepts_valid_markup() {
    for source in [
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>T</title></head><body><p>t</p></body></html>",
        "<ul><li>one</li>{for item in items { <li>{item}</li> }}</ul>",
        "<table><caption>c</caption><thead><tr><th scope=\"col\">h</th></tr></thead><tbody><tr><td>d</td></tr></tbody></table>",
        "<a href=\"/\"><h1>big</h1></a>",
        "<p>{if a { <b id=\"x\">1</b> } else { <i id=\"x\">2</i> }}</p>",
        "<form method=\"post\"><label>n <input name=\"n\" required disabled={off}></label><button>go</button></form>",
        "<svg viewBox=\"0 0 1 1\"><path d=\"M0 0\" /><foreignObject><p>t</p></foreignObject></svg>",
        "<my-element what=\"ever\"><p>t</p></my-element>",
        "<p data-x=\"1\" \"@click\"=\"2\" aria-label=\"l\" onclick={raw_code}>t</p>",
        "<li>root of a component</li><td>too</td>",
        "<dl><div><dt>t</dt><dd>d</dd></div></dl>",
        "<select><optgroup label=\"l\"><option selected>o</option></optgroup></select>",
        "<img src={source} alt=\"\">",
        "<video controls><source src=\"a\"><p>none</p></video>",
        "<details><summary>s</summary><p>p</p></details>",
        "<dl>{let a = b;}<dt>{a}</dt>{let c = d;}<dd>{c}</dd></dl>",
        "<!-- a -->{let a = b;}<!DOCTYPE html><html lang=\"en\"><head><title>{a}</title></head><body></body></html>",
    ] {
        check(source, "");
    }
}

#[test]
fn suggests_the_nearest_name() {
    check(
        "<secton></secton>",
        "secton: HTML has no element `<secton>`; did you mean `<section>`?; a custom element has a dash in its name",
    );
    check(
        "<a herf=\"/\">t</a>",
        "herf: `<a>` has no attribute `herf`; did you mean `href`?; a custom attribute is `data-herf`, and a quoted name is not checked",
    );
    check("<svg><pth /></svg>", "pth: `<svg>` has no element `<pth>`; did you mean `<path>`?");
}

#[test]
fn bindings_and_comments_do_not_count_as_content() {
    let message = "details: `<details>` needs a `<summary>`";
    check("<details>{let a = b;}<p>t</p></details>", message);
    check("<details><!-- <summary>s</summary> --><p>t</p></details>", message);
}

#[test]
fn lists_the_values_that_an_attribute_takes() {
    check(
        "<input type=\"txet\">",
        "\"txet\": `type` takes one of `button`, `checkbox`, `color`, `date`, `datetime-local`, `email`, `file`, `hidden`, `image`, `month`, `number`, `password`, `radio`, `range`, `reset`, `search`, `submit`, `tel`, `text`, `time`, `url`, `week`, not `txet`; did you mean `text`?",
    );
    check(
        "<td colspan=\"two\"></td>",
        "\"two\": `colspan` takes a whole number from 1 on, not `two`",
    );
    check(
        "<input disabled=\"yes\">",
        "\"yes\": `disabled` takes no value: write `disabled`, or `disabled={condition}`",
    );
}

#[test]
fn lists_the_content_that_a_parent_allows() {
    check(
        "<p><li>t</li></p>",
        "li: `<li>` is not allowed in `<p>`: `<li>` belongs in `<menu>`, `<ol>`, `<template>`, `<ul>`",
    );
    check(
        "<span><div>t</div></span>",
        "div: `<div>` is not allowed in `<span>`: it takes phrasing content",
    );
    check("<a href=\"/\"><b><a href=\"/\">t</a></b></a>", "a: `<a>` is not allowed inside `<a>`");
    check(
        "<ul>text</ul>",
        "text: no text is allowed in `<ul>`: it takes script-supporting content and `<li>`",
    );
}

#[test]
fn reports_missing_and_duplicate_attributes() {
    check(
        "<img src=\"a\">",
        "img: `<img>` needs `alt`, a text alternative for the image; `alt=\"\"` if it is decorative",
    );
    check(
        "<b id=\"x\">1</b><i id=\"x\">2</i>",
        "\"x\": the id `x` is already used by another element",
    );
    check(
        "<p>{for a in b { <b id=\"x\">1</b> }}</p>",
        "\"x\": each iteration of the loop would have the id `x`",
    );
}

#[test]
fn suggests_a_replacement_for_an_obsolete_element() {
    let sample = Sample::new("<center>t</center>");
    let mut faults = Vec::new();
    let nodes = parse(&sample.tokens, &mut faults);
    super::check(&nodes, &mut faults);
    assert!(sample.report(&faults).starts_with("center: `<center>` is no longer part of HTML: "));
}

#[test]
fn rejects_uppercase_names() {
    check("<BR>", "BR: `<BR>` must be lowercase: `<br>`");
    check("<p Class=\"a\">t</p>", "Class: `Class` must be lowercase: `class`");
}

#[test]
fn reports_every_mistake_at_its_token() {
    check(
        "<ul><p clas=\"a\">t</p><li>u<dvi></dvi></li></ul>",
        "clas: `<p>` has no attribute `clas`; did you mean `class`?; a custom attribute is `data-clas`, and a quoted name is not checked
         p: `<p>` is not allowed in `<ul>`: it takes script-supporting content and `<li>`
         dvi: HTML has no element `<dvi>`; did you mean `<div>`?; a custom element has a dash in its name",
    );
}

#[test]
fn rejects_a_second_caption() {
    check(
        "<table><caption>a</caption><caption>b</caption><tbody></tbody></table>",
        "caption: `<caption>` belongs in `<table>` only once",
    );
}

#[test]
fn allows_a_caption_in_each_table_of_a_loop() {
    // Symptom: a table in a loop could have no caption. Cause: loops outside the parent counted as
    // well.
    check("{for a in b { <table><caption>{a}</caption></table> }}", "");
    check(
        "<table>{for a in b { <caption>{a}</caption> }}</table>",
        "caption: `<caption>` belongs in `<table>` only once",
    );
}

#[test]
fn checks_the_order_of_children() {
    check("<fieldset>{intro}<legend>l</legend><p>p</p></fieldset>", "");
    check("<table>{if a { <thead></thead> }}<caption>c</caption></table>", "");
    check(
        "<fieldset><p>p</p><legend>l</legend></fieldset>",
        "legend: `<legend>` is out of order in `<fieldset>`: the order is `<legend>`, then the rest",
    );
    check(
        "<fieldset>text<legend>l</legend></fieldset>",
        "legend: `<legend>` is out of order in `<fieldset>`: the order is `<legend>`, then the rest",
    );
    check(
        "<figure><img src=\"a\" alt=\"\"><figcaption>c</figcaption><my-map></my-map></figure>",
        "my: this is out of order in `<figure>`: the order is `<figcaption>`, then the rest, then `<figcaption>`",
    );
    check(
        "<table>{for a in b { <tr><td>{a}</td></tr> }}<thead></thead></table>",
        "thead: `<thead>` is out of order in `<table>`: the order is `<caption>`, then `<colgroup>`, then `<thead>`, then `<tbody>`, then `<tr>`, then `<tfoot>`",
    );
}

#[test]
fn reports_missing_children_only_if_all_are_known() {
    check("<details>{summary}</details>", "");
    check("<details>{if a { <summary>s</summary> }}</details>", "");
    check("<details><p>p</p></details>", "details: `<details>` needs a `<summary>`");
    check(
        "<hgroup><p>p</p></hgroup>",
        "hgroup: `<hgroup>` needs a `<h1>` or `<h2>` or `<h3>` or `<h4>` or `<h5>` or `<h6>`",
    );
}

#[test]
fn checks_terms_and_descriptions() {
    check("<dl>{for a in b { <dt>{a}</dt><dd>d</dd> }}<dt>t</dt>{rest}</dl>", "");
    check("<dl>{first}<dd>d</dd></dl>", "");
    check("<dl><dd>d</dd></dl>", "dd: `<dd>` needs a `<dt>` before it");
    check("<dl><dt>a</dt><dd>d</dd><dt>t</dt></dl>", "dt: `<dt>` needs a `<dd>` after it");
    check(
        "<dl><dt>a</dt><dd>d</dd><div><dt>a</dt><dd>d</dd></div></dl>",
        "div: in `<dl>`, put either every group in a `<div>` or no group",
    );
    check(
        "<dl><div><dt>a</dt><dd>d</dd><dt>b</dt><dd>e</dd></div></dl>",
        "dt: a `<div>` in `<dl>` is one group: `<dt>`, then `<dd>`",
    );
    check(
        "<dl><div><p>p</p></div></dl>",
        "p: `<p>` is not allowed in `<div>`: it takes script-supporting content and `<dd>`, `<dt>`",
    );
    check(
        "<section><div><dt>t</dt></div></section>",
        "dt: `<dt>` is not allowed in this `<div>`: it takes flow content",
    );
}

#[test]
fn checks_unique_controls_and_main() {
    check(
        "<label>{if a { <input> } else { <select></select> }}<input type=\"hidden\"></label>",
        "",
    );
    check("<body><main>a</main><main hidden>b</main></body>", "");
    check("{if a { <main>a</main> } else { <main>b</main> }}", "");
    check(
        "<label><input><output></output></label>",
        "output: a `<label>` labels only one control, and this `<output>` is another",
    );
    check("<main>a</main><main>b</main>", "main: a page has one `<main>`; others must be `hidden`");
    check(
        "<section><main>a</main></section>",
        "main: `<main>` is not allowed inside `<section>`: its ancestors may only be `<body>`, `<div>`, `<form>`, `<html>`",
    );
}

#[test]
fn rejects_tabindex_inside_interactive_content() {
    check("<a href=\"/\"><b>b</b></a><p tabindex=\"0\">p</p>", "");
    check(
        "<button><b tabindex=\"0\">b</b></button>",
        "b: `<b>` with `tabindex` is not allowed inside `<button>`, which allows no content that is interactive",
    );
}

#[test]
fn checks_input_attributes_by_type() {
    check("<input type={kind} checked maxlength=\"3\" value=\"x\">", "");
    check("<input type=\"date\" value=\"\" min=\"2026-11-21\" max={last}>", "");
    check(
        "<input checked>",
        "checked: `<input>` with no `type` has no `checked`: that is for `checkbox`, `radio`",
    );
    check(
        "<input type=\"number\" maxlength=\"3\">",
        "maxlength: `<input>` with `type=\"number\"` has no `maxlength`: that is for `email`, `password`, `search`, `tel`, `text`, `url`",
    );
    check(
        "<input type=\"date\" value=\"21.11.2026\">",
        "\"21.11.2026\": `value` takes a date, `2026-11-21`, not `21.11.2026`",
    );
    check(
        "<input type=\"image\" src=\"a\">",
        "input: `<input>` needs `alt` where `type` is `image`",
    );
    check(
        "<picture><source src=\"a\"><img src=\"a\" alt=\"\"></picture>",
        "source: `<source>` needs `srcset` in `<picture>`",
    );
}

#[test]
fn checks_style_attributes_as_css() {
    check("<p style=\"color: red; --mine: {}\">t</p>", "");
    check("<p \"style\"=\"colr: red\">t</p><p style={raw(style)}>t</p>", "");
    check(
        "<p style=\"colr: red; margin: 3xp\">t</p>",
        "\"colr: red; margin: 3xp\": CSS has no property `colr`; did you mean `color`?; a custom property begins with `--`
         \"colr: red; margin: 3xp\": CSS has no unit `xp`; did you mean `px`?",
    );
    check(
        "<svg><path style=\"fill none\" /></svg>",
        "\"fill none\": a `:` is missing after `fill`",
    );
    check(
        "<p style=\"p { color: red }\">t</p>",
        "\"p { color: red }\": a `style` attribute takes only declarations, `name: value;`",
    );
}

#[test]
fn checks_region_content_against_the_parent() {
    check("<ul><Live>{for a in b { <li>{a}</li> }}</Live></ul><Live><p>t</p></Live>", "");
    check(
        "<ul><Live><p>t</p></Live></ul>",
        "p: `<p>` is not allowed in `<ul>`: it takes script-supporting content and `<li>`",
    );
    check(
        "<Live id=\"a\">t</Live>",
        "id: `<Live>` is not an element and has no attributes: put them on an element inside or around it",
    );
    check(
        "<title><Live>{t}</Live></title>",
        "Live: `<Live>` is not allowed in `<title>`, which cannot contain marks: put it around that element",
    );
    check(
        "<html><Live><body></body></Live></html>",
        "Live: `<Live>` belongs inside `<body>` or `<head>`: a browser cannot replace these elements",
    );
}
