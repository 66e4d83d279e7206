//! Examples for documents and their heads (HTML 4.1, 4.2).

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        anchor: "the-html-element",
        right: &[
            r#"<!DOCTYPE html><html lang="en"><head><title>Hops</title></head><body><h1>Hops</h1><p>They climb</p></body></html>"#,
            r#"<html lang="pt-BR" class="dark"><head><title>t</title></head><body></body></html>"#,
            r#"<html xmlns="http://www.w3.org/1999/xhtml" lang="en" xml:lang="en"><head><title>t</title></head><body></body></html>"#,
        ],
        wrong: &[
            (
                "<html><body></body><head><title>t</title></head></html>",
                "`<head>` is out of order in `<html>`",
            ),
            (
                "<html><p>t</p></html>",
                "`<p>` is not allowed in `<html>`: it takes `<body>`, `<head>`",
            ),
            (r#"<html>"text"</html>"#, "no text is allowed in `<html>`"),
            ("<html><body></body><body></body></html>", "`<body>` belongs in `<html>` only once"),
            (r#"<html manifest="a"></html>"#, "`manifest` is no longer part of HTML"),
            (r#"<html lang="en_GB"></html>"#, "`lang` takes the tag of a language"),
            ("<html></html><!DOCTYPE html>", "`<!DOCTYPE html>` must come first"),
        ],
    },
    Page {
        anchor: "the-head-element",
        right: &[
            "<head><title>A short head</title></head>",
            r#"<html lang="en"><head><meta charset="utf-8"><base href="/app/"><title>A long head</title><link rel="stylesheet" href="a.css"><style>"b {}"</style><script src="a.js"></script><template></template><noscript><link rel="stylesheet" href="b.css"></noscript></head><body></body></html>"#,
        ],
        wrong: &[
            (r#"<head><meta charset="utf-8"></head>"#, "`<head>` needs a `<title>`"),
            ("<head><title>t</title><p>t</p></head>", "`<p>` is not allowed in `<head>`"),
            (r#"<head><title>t</title>"text"</head>"#, "no text is allowed in `<head>`"),
            (
                "<div><head><title>t</title></head></div>",
                "`<head>` is not allowed in `<div>`: `<head>` belongs in `<html>`",
            ),
            (
                "<head><title>t</title><noscript><p>t</p></noscript></head>",
                "`<p>` is not allowed in `<noscript>`",
            ),
        ],
    },
    Page {
        anchor: "the-title-element",
        right: &[
            r#"<head><title>"Bees, and what they dance"</title></head>"#,
            r#"<head><title>{name} " - shop"</title></head>"#,
        ],
        wrong: &[
            (
                "<head><title>The <i>bees</i></title></head>",
                "`<i>` is not allowed in `<title>`: it takes text",
            ),
            (
                "<head><title>a</title><title>b</title></head>",
                "`<title>` belongs in `<head>` only once",
            ),
            ("<body><title>t</title></body>", "`<title>` belongs in `<head>`"),
        ],
    },
    Page {
        anchor: "the-base-element",
        right: &[
            r#"<head><title>t</title><base href="https://example.com/news/"></head>"#,
            r#"<head><title>t</title><base target="_blank"></head>"#,
        ],
        wrong: &[
            ("<head><title>t</title><base></head>", "`<base>` needs `href` or `target`"),
            (
                r#"<head><title>t</title><base href="/a"><base href="/b"></head>"#,
                "`<base>` belongs in `<head>` only once",
            ),
            (r#"<body><base href="/"></body>"#, "`<base>` is not allowed in `<body>`"),
            (r#"<base href="/">t</base>"#, "`<base>` is void"),
        ],
    },
    Page {
        anchor: "the-link-element",
        right: &[
            r#"<link rel="author license" href="/about">"#,
            r#"<link rel="preload" as="image" imagesrcset="a.jpg 400w, b.jpg 800w" imagesizes="50vw">"#,
            r#"<link rel="alternate stylesheet" href="sepia.css" title="Sepia" disabled>"#,
            r#"<link rel="alternate" hreflang="fr" href="/fr" type="text/html" title="In French">"#,
            r#"<link rel="icon" href="a.png" sizes="16x16" type="image/png">"#,
            r#"<link rel="mask-icon" href="a.svg" color="green">"#,
            r#"<link rel="modulepreload" href="a.mjs" as="script" crossorigin integrity="sha256-a" fetchpriority="low">"#,
            r#"<p><link rel="stylesheet" href="a.css" media="print" blocking="render">text</p>"#,
            r#"<p itemscope><link itemprop="url" href="/a"></p>"#,
        ],
        wrong: &[
            (r#"<link rel="preload" href="a">"#, "`<link>` needs `as` where `rel` is `preload`"),
            (
                r#"<link rel="icon" href="a" as="image">"#,
                "`<link>` has `as` only where `rel` is one of `modulepreload`, `preload`",
            ),
            (
                r#"<link rel="icon" href="a" disabled>"#,
                "`<link>` has `disabled` only where `rel` is `stylesheet`",
            ),
            (
                r#"<link rel="stylesheet" href="a" sizes="16x16">"#,
                "`<link>` has `sizes` only where `rel` is one of",
            ),
            (
                r#"<link rel="preload" as="font" imagesrcset="a">"#,
                "`<link>` has `imagesrcset` only where `as` is `image`",
            ),
            (r#"<link rel="icon" href="a" integrity="b">"#, "`<link>` has `integrity` only where"),
            (r#"<link rel="stylesheet">"#, "`<link>` needs `href` or `imagesrcset`"),
            (r#"<link href="a.css">"#, "`<link>` needs `itemprop` or `rel`"),
            (r#"<p><link rel="icon" href="a.png">t</p>"#, "`<link>` is not allowed in `<p>`"),
            (r#"<link rel="preload" as="picture" href="a">"#, "`as` takes one of"),
            (r#"<link rel="a" href="b" fetchpriority="highest">"#, "`fetchpriority` takes one of"),
            (r#"<link rel="a" href="b" blocking="paint">"#, "`blocking` takes any of `render`"),
            (r#"<link rel="a" href="b" charset="utf-8">"#, "`charset` is no longer part of HTML"),
            (r#"<link rel="a" href="b" rev="made">"#, "`rev` is no longer part of HTML"),
            (r#"<link rel="a" href="b" target="_blank">"#, "`target` is no longer part of HTML"),
            (r#"<link rel="a" ref="b" href="c">"#, "`<link>` has no attribute `ref`; did you mean"),
        ],
    },
    Page {
        anchor: "the-meta-element",
        right: &[
            r#"<meta charset="utf-8">"#,
            r#"<meta name="generator" content="Bine">"#,
            r##"<meta name="theme-color" content="#3c790a" media="(prefers-color-scheme: dark)">"##,
            r#"<meta name="color-scheme" content="dark">"#,
            r#"<meta name="keywords" content="hops, beer">"#,
            r#"<meta http-equiv="refresh" content="20; URL=page4">"#,
            r#"<meta http-equiv="Content-Security-Policy" content="object-src 'none'">"#,
            r#"<p itemscope><meta itemprop="count" content="3">text</p>"#,
            r#"<meta property="og:title" content="Hops">"#,
        ],
        wrong: &[
            (r#"<meta name="description">"#, "`<meta>` needs `content` beside `name`"),
            (r#"<meta http-equiv="refresh">"#, "`<meta>` needs `content` beside `http-equiv`"),
            (
                r#"<meta content="a">"#,
                "`<meta>` needs `charset` or `http-equiv` or `itemprop` or `name`",
            ),
            (r#"<meta charset="latin1">"#, "`charset` takes one of `utf-8`"),
            (r#"<meta http-equiv="refresch" content="1">"#, "did you mean `refresh`?"),
            (r#"<meta name="a" content="b" scheme="c">"#, "`scheme` is no longer part of HTML"),
            (r#"<p><meta name="a" content="b"></p>"#, "`<meta>` is not allowed in `<p>`"),
            (r#"<meta nam="a" charset="utf-8">"#, "did you mean `name`?"),
        ],
    },
    Page {
        anchor: "the-style-element",
        right: &[
            r#"<head><title>t</title><style>"body { color: black }"</style></head>"#,
            r#"<style media="(max-width: 600px)" title="Narrow" blocking="render" nonce="a">"a {}"</style>"#,
        ],
        wrong: &[
            (r#"<body><style>"a {}"</style></body>"#, "`<style>` is not allowed in `<body>`"),
            (r#"<div><style>"a {}"</style></div>"#, "`<style>` is not allowed in `<div>`"),
            (r#"<style type="text/css">"a {}"</style>"#, "`type` is no longer part of HTML"),
            ("<style><b>a</b></style>", "no element is allowed here"),
            (r#"<style scoped>"a {}"</style>"#, "`<style>` has no attribute `scoped`"),
        ],
    },
    Page {
        anchor: "global-attributes",
        right: &[
            r#"<p id="a" class="b c" lang="en" dir="auto" title="d" hidden>t</p>"#,
            r#"<p hidden="until-found" inert tabindex="-1" translate="no" spellcheck="false">t</p>"#,
            r#"<p contenteditable="plaintext-only" autocapitalize="sentences" autocorrect="off" inputmode="numeric" enterkeyhint="go" writingsuggestions="false">t</p>"#,
            r#"<p draggable="true" accesskey="s" popover="manual" nonce="a" slot="b" data-place="7">t</p>"#,
            r#"<p itemscope itemtype="https://schema.org/Person" itemid="urn:a" itemref="b"><b itemprop="name">n</b></p>"#,
            r#"<p role="note" aria-label="l" aria-hidden="false" headingoffset="1" headingreset>t</p>"#,
        ],
        wrong: &[
            (
                r#"<p itemtype="https://schema.org/Person">t</p>"#,
                "`<p>` has `itemtype` only beside `itemscope`",
            ),
            (r#"<p itemref="a">t</p>"#, "`<p>` has `itemref` only beside `itemscope`"),
            (r#"<p itemscope itemid="urn:a">t</p>"#, "`<p>` has `itemid` only beside `itemtype`"),
            (r#"<p id="a b">t</p>"#, "`id` takes an id, without spaces"),
            (
                r#"<p><b id="a">1</b><b id="a">2</b></p>"#,
                "the id `a` is already used by another element",
            ),
            (r#"<p class="a" class="b">t</p>"#, "`class` is set twice"),
            (r#"<p dir="left">t</p>"#, "`dir` takes one of `auto`, `ltr`, `rtl`"),
            (r#"<p tabindex="first">t</p>"#, "`tabindex` takes a whole number"),
            ("<p draggable>t</p>", "`draggable` needs a value"),
            (r#"<p contenteditable="yes">t</p>"#, "`contenteditable` takes"),
            (r#"<p translate="false">t</p>"#, "`translate` takes"),
            (r#"<p popover="always">t</p>"#, "`popover` takes"),
            (r#"<p inert="true">t</p>"#, "`inert` takes no value"),
            (r#"<p contextmenu="a">t</p>"#, "`contextmenu` is no longer part of HTML"),
            (r#"<p role="buton">t</p>"#, "did you mean `button`?"),
            (r#"<p aria-lable="l">t</p>"#, "did you mean `aria-label`?"),
            (r#"<p aria-hidden="yes">t</p>"#, "`aria-hidden` takes"),
            ("<p onclik={raw_code}>t</p>", "did you mean `onclick`?"),
            (r#"<p lang="english language">t</p>"#, "`lang` takes the tag of a language"),
        ],
    },
];
