//! Examples for forms (HTML 4.10), except `input`.

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        anchor: "the-form-element",
        right: &[
            r#"<form action="https://example.com/search" method="get"><label>Find: <input type="search" name="q"></label> <input type="submit"></form>"#,
            r#"<form method="post" enctype="multipart/form-data" action="/order" target="_blank" novalidate autocomplete="off" name="f" rel="noopener" accept-charset="UTF-8"></form>"#,
            r#"<dialog><form method="dialog"><button value="yes">Yes</button></form></dialog>"#,
        ],
        wrong: &[
            ("<form><div><form></form></div></form>", "`<form>` is not allowed inside `<form>`"),
            ("<p><form></form></p>", "`<form>` is not allowed in `<p>`"),
            (r#"<form method="put"></form>"#, "`method` takes one of `dialog`, `get`, `post`"),
            (r#"<form enctype="json"></form>"#, "`enctype` takes one of"),
            (r#"<form autocomplete="name"></form>"#, "`autocomplete` takes one of `off`, `on`"),
            (r#"<form accept-charset="latin1"></form>"#, "`accept-charset` takes one of `utf-8`"),
            (
                r#"<form accept="image/png"></form>"#,
                "`accept` is no longer part of HTML: put it on the `input`",
            ),
            (r#"<form acton="/"></form>"#, "did you mean `action`?"),
        ],
    },
    Page {
        anchor: "the-label-element",
        right: &[
            r#"<p><label>Full name: <input name="fn"> <small>Format: First Last</small></label></p>"#,
            r#"<label><input type="checkbox" name="lost"> Lost</label>"#,
            r#"<label><my-checkbox name="lost"></my-checkbox> Lost</label>"#,
            r#"<label for="u">Type</label><select id="u"></select>"#,
            r#"<label>Tags <input type="hidden" name="a"><input name="b"></label>"#,
        ],
        wrong: &[
            ("<label><b><label>t</label></b></label>", "`<label>` is not allowed inside `<label>`"),
            (
                r#"<label><input name="a"><input name="b"></label>"#,
                "a `<label>` labels only one control",
            ),
            (
                r#"<label><meter value="1"></meter><button>t</button></label>"#,
                "this `<button>` is another",
            ),
            ("<label><div>t</div></label>", "`<div>` is not allowed in `<label>`"),
            (r#"<label for="a b">t</label>"#, "`for` takes an id, without spaces"),
            (r#"<label form="f">t</label>"#, "`<label>` has no attribute `form`"),
            ("<button><label>t</label></button>", "`<label>` is not allowed inside `<button>`"),
        ],
    },
    Page {
        anchor: "the-button-element",
        right: &[
            r#"<button type={kind} formaction="/a">t</button>"#,
            r#"<button type="button" onclick={raw_code}>Show hint</button>"#,
            r#"<p><button name="mode" value="a" disabled form="f" formaction="/a" formmethod="post" formenctype="text/plain" formnovalidate formtarget="_top">Post</button></p>"#,
            r#"<button popovertarget="menu" popovertargetaction="toggle">Menu</button><button commandfor="d" command="show-modal">Open</button><button commandfor="d" command="--spin">Spin</button>"#,
            r#"<button is="plastic-button"><img src="a" alt="Go"> <b>now</b></button>"#,
            "<select><button><selectedcontent></selectedcontent></button><option>t</option></select>",
        ],
        wrong: &[
            (
                r#"<button type="button" formaction="/a">t</button>"#,
                "`<button>` has `formaction` only where `type` is not one of `button`, `reset`",
            ),
            (
                r#"<button type="reset" formnovalidate>t</button>"#,
                "`<button>` has `formnovalidate` only where",
            ),
            (
                r#"<button><a href="/">t</a></button>"#,
                "`<a>` is not allowed inside `<button>`, which allows no content that is interactive",
            ),
            ("<button><button>t</button></button>", "`<button>` is not allowed inside `<button>`"),
            (
                r#"<button><span tabindex="0">t</span></button>"#,
                "`<span>` with `tabindex` is not allowed inside `<button>`",
            ),
            ("<button><p>t</p></button>", "`<p>` is not allowed in `<button>`"),
            (
                r#"<button type="push">t</button>"#,
                "`type` takes one of `button`, `reset`, `submit`",
            ),
            (r#"<button type="menu">t</button>"#, "`type` takes one of"),
            (
                r#"<button popovertargetaction="open">t</button>"#,
                "`popovertargetaction` takes one of `hide`, `show`, `toggle`",
            ),
            (r#"<button disabled="false">t</button>"#, "`disabled` takes no value"),
        ],
    },
    Page {
        anchor: "the-select-element",
        right: &[
            r#"<select name="unit" required><option value="">Choose</option><option value="1">Miner</option><option value="2" selected>Puffer</option></select>"#,
            r#"<select multiple size="4" autocomplete="off" disabled form="f"><optgroup label="A"><option>t</option></optgroup><hr><option>t</option></select>"#,
            "<select><div><option>t</option></div><template></template></select>",
        ],
        wrong: &[
            ("<select><p>t</p></select>", "`<p>` is not allowed in `<select>`"),
            (r#"<select>"text"</select>"#, "no text is allowed in `<select>`"),
            (
                "<select><option>a</option><button>b</button></select>",
                "`<button>` is out of order in `<select>`",
            ),
            (r#"<select size="0"></select>"#, "`size` takes a whole number from 1 on"),
            ("<select readonly></select>", "`<select>` has no attribute `readonly`"),
            (r#"<a href="/"><select></select></a>"#, "`<select>` is not allowed inside `<a>`"),
        ],
    },
    Page {
        anchor: "the-datalist-element",
        right: &[
            r#"<label>Animal: <input name="animal" list="animals"></label><datalist id="animals"><option value="Cat"></option><option value="Dog" label="A dog"></option></datalist>"#,
            r#"<datalist id="b"><label>or: <select name="b"><option>Cat</option></select></label></datalist>"#,
        ],
        wrong: &[
            ("<datalist><p>t</p></datalist>", "`<p>` is not allowed in `<datalist>`"),
            ("<ul><datalist></datalist></ul>", "`<datalist>` is not allowed in `<ul>`"),
            (r#"<datalist name="a"></datalist>"#, "`<datalist>` has no attribute `name`"),
        ],
    },
    Page {
        anchor: "the-optgroup-element",
        right: &[
            r#"<select name="c"><optgroup label="Physics"><option value="8.01">Mechanics</option></optgroup><optgroup label="More" disabled></optgroup></select>"#,
            "<select><optgroup><legend>Physics</legend><option>t</option></optgroup></select>",
        ],
        wrong: &[
            (
                r#"<datalist><optgroup label="a"></optgroup></datalist>"#,
                "`<optgroup>` is not allowed in `<datalist>`",
            ),
            (
                r#"<select><optgroup label="a">"text"</optgroup></select>"#,
                "no text is allowed in `<optgroup>`",
            ),
            (
                r#"<select><optgroup label="a"><optgroup label="b"></optgroup></optgroup></select>"#,
                "`<optgroup>` is not allowed in `<optgroup>`",
            ),
            (r#"<p><optgroup label="a"></optgroup></p>"#, "`<optgroup>` is not allowed in `<p>`"),
        ],
    },
    Page {
        anchor: "the-option-element",
        right: &[
            r#"<select><option value="1" label="One" disabled>One</option><option selected={chosen}>{name}</option></select>"#,
            r#"<select><option><img src="a" alt=""> <b>Cat</b></option></select>"#,
        ],
        wrong: &[
            (
                "<p><option>t</option></p>",
                "`<option>` is not allowed in `<p>`: `<option>` belongs in",
            ),
            ("<ul><option>t</option></ul>", "`<option>` is not allowed in `<ul>`"),
            (
                "<select><option><button>t</button></option></select>",
                "`<button>` is not allowed inside `<option>`",
            ),
            ("<select><option><p>t</p></option></select>", "`<p>` is not allowed in `<option>`"),
            (
                r#"<select><option><b tabindex="0">t</b></option></select>"#,
                "`<b>` with `tabindex` is not allowed inside `<option>`",
            ),
            (r#"<select><option selected="yes">t</option></select>"#, "`selected` takes no value"),
            (r#"<select><option name="a">t</option></select>"#, "`name` is no longer part of HTML"),
        ],
    },
    Page {
        anchor: "the-textarea-element",
        right: &[
            r#"<p>Tell us: <textarea cols="80" rows="4" name="comments" maxlength="200" minlength="5" required placeholder="Dear us" wrap="hard">You rock</textarea></p>"#,
            r#"<textarea readonly dirname="a.dir" autocomplete="street-address" form="f" disabled>{text}</textarea>"#,
        ],
        wrong: &[
            (
                "<textarea><b>t</b></textarea>",
                "`<b>` is not allowed in `<textarea>`: it takes text",
            ),
            (r#"<textarea rows="0"></textarea>"#, "`rows` takes a whole number from 1 on"),
            (r#"<textarea cols="wide"></textarea>"#, "`cols` takes a whole number from 1 on"),
            (r#"<textarea wrap="off"></textarea>"#, "`wrap` takes one of `hard`, `soft`"),
            (
                r#"<textarea maxlength="-1"></textarea>"#,
                "`maxlength` takes a whole number that is not negative",
            ),
            (r#"<textarea value="t"></textarea>"#, "`<textarea>` has no attribute `value`"),
        ],
    },
    Page {
        anchor: "the-output-element",
        right: &[
            r#"<form oninput={raw_code}><input id="a" type="number"> <input id="b" type="number"> <output name="o" for="a b" form="f"></output></form>"#,
            r#"<output id="result"><b>t</b></output>"#,
        ],
        wrong: &[
            ("<output><p>t</p></output>", "`<p>` is not allowed in `<output>`"),
            (r#"<output for="">t</output>"#, "`for` takes ids with spaces between"),
            (r#"<output value="1"></output>"#, "`<output>` has no attribute `value`"),
        ],
    },
    Page {
        anchor: "the-progress-element",
        right: &[
            r#"<p>Progress: <progress id="p" max="100" value="70.5"><span>0</span>"%"</progress></p>"#,
            "<progress></progress>",
        ],
        wrong: &[
            (
                "<progress><b><progress></progress></b></progress>",
                "`<progress>` is not allowed inside `<progress>`",
            ),
            (r#"<progress value="70%"></progress>"#, "`value` takes a number"),
            (r#"<progress min="0"></progress>"#, "`<progress>` has no attribute `min`"),
        ],
    },
    Page {
        anchor: "the-meter-element",
        right: &[
            r#"<p>Used: <meter value="6" max="8">6 blocks of 8</meter></p>"#,
            r#"<meter value="0.75"><img alt="75%" src="graph75.png"></meter>"#,
            r#"<meter min="0" max="60" low="10" high="50" optimum="30" value="23.2" title="seconds"></meter>"#,
        ],
        wrong: &[
            (r#"<meter max="8"></meter>"#, "`<meter>` needs `value`"),
            (
                r#"<meter value="1"><meter value="2"></meter></meter>"#,
                "`<meter>` is not allowed inside `<meter>`",
            ),
            (r#"<meter value="12cm"></meter>"#, "`value` takes a number"),
            (r#"<meter value="1" high=".."></meter>"#, "`high` takes a number"),
        ],
    },
    Page {
        anchor: "the-fieldset-element",
        right: &[
            r#"<fieldset name="club" disabled form="f"><legend><label><input type="checkbox" name="c"> Use card</label></legend><p>t</p></fieldset>"#,
            "<fieldset><p>No legend</p></fieldset>",
            "<form><fieldset><legend>A</legend><fieldset><legend>B</legend></fieldset></fieldset></form>",
        ],
        wrong: &[
            (
                "<fieldset><legend>a</legend><legend>b</legend></fieldset>",
                "`<legend>` belongs in `<fieldset>` only once",
            ),
            (
                "<fieldset><p>t</p><legend>a</legend></fieldset>",
                "`<legend>` is out of order in `<fieldset>`: the order is `<legend>`, then the rest",
            ),
            (
                r#"<fieldset>"text"<legend>a</legend></fieldset>"#,
                "`<legend>` is out of order in `<fieldset>`",
            ),
            ("<p><fieldset></fieldset></p>", "`<fieldset>` is not allowed in `<p>`"),
            (r#"<fieldset disabled="disabled"></fieldset>"#, "`disabled` takes no value"),
        ],
    },
    Page {
        anchor: "the-legend-element",
        right: &[
            "<fieldset><legend><h2>How to reach you?</h2></legend><p>t</p></fieldset>",
            r#"<fieldset><legend accesskey="p">I want <b>pizza</b></legend></fieldset>"#,
        ],
        wrong: &[
            (
                "<div><legend>t</legend></div>",
                "`<legend>` is not allowed in `<div>`: `<legend>` belongs in `<fieldset>`, `<optgroup>`, `<template>`",
            ),
            (
                "<fieldset><legend><p>t</p></legend></fieldset>",
                "`<p>` is not allowed in `<legend>`",
            ),
            (
                r#"<fieldset><legend align="left">t</legend></fieldset>"#,
                "`align` is no longer part of HTML",
            ),
        ],
    },
    Page {
        anchor: "the-selectedcontent-element",
        right: &[
            r#"<html lang="en"><body><select><button>Now: <selectedcontent></selectedcontent></button><option>a</option></select></body></html>"#,
        ],
        wrong: &[
            (
                r#"<html lang="en"><body><button><selectedcontent></selectedcontent></button></body></html>"#,
                "`<selectedcontent>` belongs inside `<select>`",
            ),
            (
                "<select><button><selectedcontent>text</selectedcontent></button></select>",
                "no text is allowed in `<selectedcontent>`",
            ),
        ],
    },
];
