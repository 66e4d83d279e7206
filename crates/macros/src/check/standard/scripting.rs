//! Examples for scripts, templates and custom elements (HTML 4.12, 4.13).

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        anchor: "the-script-element",
        right: &[
            r#"<script src="game.js"></script><script type="text/x-map">"..U..e"</script>"#,
            r#"<script type="module" src="app.mjs"></script><script nomodule defer src="old.js"></script>"#,
            r#"<script async src="a.js" crossorigin="anonymous" integrity="sha256-a" referrerpolicy="origin" fetchpriority="low" blocking="render" nonce="n"></script>"#,
            r#"<script type="importmap">"{}"</script><script type="speculationrules">"{}"</script>"#,
            r#"<ul><script>"f()"</script></ul><table><script>"f()"</script></table>"#,
        ],
        wrong: &[
            (r#"<script defer>"f()"</script>"#, "`<script>` has `defer` only beside `src`"),
            (
                r#"<script integrity="sha256-a">"f()"</script>"#,
                "`<script>` has `integrity` only beside `src`",
            ),
            (
                r#"<script type="module" nomodule src="a"></script>"#,
                "`<script>` has `nomodule` only where `type` is not `module`",
            ),
            ("<script><b>t</b></script>", "no element is allowed here"),
            (r#"<script>"</script>"</script>"#, "this text would end or hide its element"),
            (r#"<script>"<!-- <script>"</script>"#, "this text would end or hide its element"),
            (r#"<script language="js">"f()"</script>"#, "`language` is no longer part of HTML"),
            (r#"<script charset="utf-8" src="a"></script>"#, "`charset` is no longer part of HTML"),
            (r#"<script async="true" src="a"></script>"#, "`async` takes no value"),
            (r#"<title><script>"f()"</script></title>"#, "`<script>` is not allowed in `<title>`"),
        ],
    },
    Page {
        anchor: "the-noscript-element",
        right: &[
            r#"<form action="/calc"><p><label for="x">Number</label> <input id="x" type="number"></p><noscript><input type="submit" value="Calculate"></noscript></form>"#,
            r#"<html lang="en"><head><title>t</title><noscript><style>"a {}"</style><link rel="stylesheet" href="a"><meta name="a" content="b"></noscript></head><body></body></html>"#,
            "<p>text <noscript>without <b>script</b></noscript></p>",
        ],
        wrong: &[
            (
                "<noscript><p><noscript>t</noscript></p></noscript>",
                "`<noscript>` is not allowed inside `<noscript>`",
            ),
            ("<p><noscript><div>t</div></noscript></p>", "`<div>` is not allowed in `<noscript>`"),
            (
                r#"<head><title>t</title><noscript>"text"</noscript></head>"#,
                "no text is allowed in `<noscript>`",
            ),
        ],
    },
    Page {
        anchor: "the-template-element",
        right: &[
            r#"<template id="row"><tr><td>t</td></tr></template><template><li>t</li></template>"#,
            r#"<my-card><template shadowrootmode="open" shadowrootdelegatesfocus shadowrootclonable shadowrootserializable><slot></slot></template></my-card>"#,
            "<table><tbody><template><tr></tr></template></tbody></table>",
        ],
        wrong: &[
            (
                r#"<template shadowrootmode="shut"></template>"#,
                "`shadowrootmode` takes one of `closed`, `open`",
            ),
            (
                "<textarea><template></template></textarea>",
                "`<template>` is not allowed in `<textarea>`",
            ),
            (
                r#"<template shadowroot="open"></template>"#,
                "`<template>` has no attribute `shadowroot`",
            ),
        ],
    },
    Page {
        anchor: "the-slot-element",
        right: &[
            r#"<p>By <slot name="author">nobody</slot></p>"#,
            "<section><slot><p>t</p></slot></section>",
        ],
        wrong: &[
            ("<p><slot><div>t</div></slot></p>", "`<div>` is not allowed in `<slot>`"),
            ("<ul><slot></slot></ul>", "`<slot>` is not allowed in `<ul>`"),
        ],
    },
    Page {
        anchor: "the-canvas-element",
        right: &[
            r#"<canvas width="750" height="400"><label><input type="checkbox" id="showA"> Show As</label></canvas>"#,
            "<p><canvas>text</canvas></p>",
        ],
        wrong: &[
            (
                r#"<canvas width="50%"></canvas>"#,
                "`width` takes a whole number that is not negative",
            ),
            ("<p><canvas><p>t</p></canvas></p>", "`<p>` is not allowed in `<canvas>`"),
            ("<ul><canvas></canvas></ul>", "`<canvas>` is not allowed in `<ul>`"),
        ],
    },
    Page {
        anchor: "custom-elements-core-concepts",
        right: &[
            r#"<flag-icon country="nl"></flag-icon><taco-button>Eat me</taco-button>"#,
            r#"<label><my-checkbox name="agreed"></my-checkbox> I agree</label>"#,
            r#"<button is="plastic-button">t</button><img-viewer filter="Kelvin"><img src="a" alt="A tree"></img-viewer>"#,
        ],
        wrong: &[
            (
                r#"<flagicon country="nl"></flagicon>"#,
                "HTML has no element `<flagicon>`; a custom element has a dash in its name",
            ),
            ("<Flag-icon></Flag-icon>", "HTML has no element `<Flag-icon>`"),
            ("<my-card><dvi></dvi></my-card>", "did you mean `<div>`?"),
            (
                "<ul><my-item>t</my-item></ul>",
                "`<my-item>` is not allowed in `<ul>`: it takes script-supporting content and `<li>`",
            ),
            ("<font-face></font-face>", "HTML has no element `<font-face>`"),
        ],
    },
];
