//! Examples for paragraphs, lists and other grouping content (HTML 4.4).

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        anchor: "the-p-element",
        right: &[
            r#"<p>"The cat sat on the mat."</p>"#,
            r#"<fieldset><legend>You</legend><p><label>Name: <input name="n"></label></p></fieldset>"#,
            "<p>There was once an example <br> of a poem</p>",
            "<p>It has</p><ul><li>wizards</li><li>speed</li></ul><p>and more</p>",
            "<div>It has <ul><li>wizards</li></ul> and more</div>",
        ],
        wrong: &[
            (
                "<p>It has <ul><li>wizards</li></ul></p>",
                "`<ul>` is not allowed in `<p>`: it takes phrasing content",
            ),
            ("<p><p>t</p></p>", "`<p>` is not allowed in `<p>`"),
            ("<p><div>t</div></p>", "`<div>` is not allowed in `<p>`"),
            ("<p><b><table></table></b></p>", "`<table>` is not allowed in `<b>`"),
            (r#"<p align="left">t</p>"#, "`align` is no longer part of HTML"),
            ("<ul><p>t</p></ul>", "`<p>` is not allowed in `<ul>`"),
        ],
    },
    Page {
        anchor: "the-hr-element",
        right: &[
            "<section><h1>t</h1><p>t</p><hr><p>t</p></section>",
            "<select><option>a</option><hr><option>b</option></select>",
        ],
        wrong: &[
            ("<p>a<hr>b</p>", "`<hr>` is not allowed in `<p>`"),
            ("<ul><hr></ul>", "`<hr>` is not allowed in `<ul>`"),
            ("<hr noshade>", "`noshade` is no longer part of HTML"),
            (r#"<hr size="2">"#, "`size` is no longer part of HTML: use CSS `height`"),
        ],
    },
    Page {
        anchor: "the-pre-element",
        right: &[
            r#"<pre><code>"fn main() {}\n"</code></pre>"#,
            "<pre><samp>You are in a field</samp> <kbd>open door</kbd></pre>",
            r#"<pre>"  it is with a heart\n  heavy"</pre>"#,
        ],
        wrong: &[
            ("<pre><p>t</p></pre>", "`<p>` is not allowed in `<pre>`"),
            ("<p><pre>t</pre></p>", "`<pre>` is not allowed in `<p>`"),
            (r#"<pre width="80">t</pre>"#, "`width` is no longer part of HTML"),
        ],
    },
    Page {
        anchor: "the-blockquote-element",
        right: &[
            "<blockquote><p>She said she liked fish</p></blockquote>",
            "<figure><blockquote><p>t</p></blockquote><figcaption>A poet</figcaption></figure>",
            r#"<p>His <cite>Sonnet</cite>:</p><blockquote cite="https://example.org/130"><p>My love</p></blockquote>"#,
            r#"<blockquote>"Words without a paragraph."</blockquote>"#,
        ],
        wrong: &[
            ("<p><blockquote>t</blockquote></p>", "`<blockquote>` is not allowed in `<p>`"),
            ("<blockquote><li>t</li></blockquote>", "`<li>` is not allowed in `<blockquote>`"),
            (r#"<blockquote site="/a">t</blockquote>"#, "did you mean `cite`?"),
        ],
    },
    Page {
        anchor: "the-ol-element",
        right: &[
            "<p>I lived in:</p><ol><li>Norway</li><li>Spain</li></ol>",
            r#"<ol reversed start="-3" type="a"><li>t</li><template><li>t</li></template></ol>"#,
        ],
        wrong: &[
            (r#"<ol>"text"</ol>"#, "no text is allowed in `<ol>`"),
            (
                "<ol><div>t</div></ol>",
                "`<div>` is not allowed in `<ol>`: it takes script-supporting content and `<li>`",
            ),
            ("<ol><ol><li>t</li></ol></ol>", "`<ol>` is not allowed in `<ol>`"),
            (r#"<ol start="first"></ol>"#, "`start` takes a whole number"),
            (r#"<ol type="x"></ol>"#, "`type` takes one of"),
            (r#"<ol reversed="yes"></ol>"#, "`reversed` takes no value"),
            ("<ol compact></ol>", "`compact` is no longer part of HTML"),
        ],
    },
    Page {
        anchor: "the-ul-element",
        right: &[
            "<ul><li>Norway</li><li>Spain</li></ul>",
            r#"<ul><script src="a.js"></script></ul>"#,
        ],
        wrong: &[
            (r#"<ul><a href="/">t</a></ul>"#, "`<a>` is not allowed in `<ul>`"),
            (r#"<ul>"text"</ul>"#, "no text is allowed in `<ul>`"),
            (
                r#"<ul type="disc"></ul>"#,
                "`type` is no longer part of HTML: use CSS `list-style-type`",
            ),
        ],
    },
    Page {
        anchor: "the-menu-element",
        right: &[
            r#"<menu><li><button onclick={raw_code}><img src="copy.svg" alt="Copy"></button></li><li><button>Cut</button></li></menu>"#,
        ],
        wrong: &[
            ("<menu><button>t</button></menu>", "`<button>` is not allowed in `<menu>`"),
            (r#"<menu>"text"</menu>"#, "no text is allowed in `<menu>`"),
            (r#"<menu type="toolbar"></menu>"#, "`type` is no longer part of HTML"),
            (r#"<menu label="t"></menu>"#, "`label` is no longer part of HTML"),
        ],
    },
    Page {
        anchor: "the-li-element",
        right: &[
            r#"<ol><li>One</li><li value="3">Three</li><li>Four</li></ol>"#,
            "<ul><li><p>t</p><ul><li>t</li></ul></li></ul>",
            r#"<ol reversed><li value="-10"><cite>A film</cite> "1999"</li></ol>"#,
        ],
        wrong: &[
            (
                "<div><li>t</li></div>",
                "`<li>` is not allowed in `<div>`: `<li>` belongs in `<menu>`, `<ol>`, `<template>`, `<ul>`",
            ),
            (r#"<ol><li value="third">t</li></ol>"#, "`value` takes a whole number"),
            (r#"<ul><li type="disc">t</li></ul>"#, "`type` is no longer part of HTML"),
            ("<li><li>t</li></li>", "`<li>` is not allowed in `<li>`"),
        ],
    },
    Page {
        anchor: "the-dl-element",
        right: &[
            "<dl><dt>Authors</dt><dd>John</dd><dd>Luke</dd><dt>Editor</dt><dd>Frank</dd></dl>",
            r#"<dl><dt lang="en-US"><dfn>color</dfn></dt><dt lang="en-GB"><dfn>colour</dfn></dt><dd>What is seen</dd></dl>"#,
            "<dl><div><dt>Changed</dt><dd>today</dd></div><div><dt>By</dt><dd>me</dd><dd>you</dd></div></dl>",
            r#"<dl><dt>t</dt><script src="a.js"></script><dd>t</dd></dl>"#,
            "<dl></dl>",
        ],
        wrong: &[
            ("<dl><p>t</p></dl>", "`<p>` is not allowed in `<dl>`"),
            (r#"<dl>"text"</dl>"#, "no text is allowed in `<dl>`"),
            ("<dl><dt>t</dt><dd>t</dd><dt>t</dt></dl>", "`<dt>` needs a `<dd>` after it"),
            (
                "<dl><div><dt>t</dt><dd>t</dd></div><dt>t</dt><dd>t</dd></dl>",
                "in `<dl>`, put either every group in a `<div>` or no group",
            ),
            ("<dl><div><span>t</span></div></dl>", "`<span>` is not allowed in `<div>`"),
            (r#"<dl><div>"text"</div></dl>"#, "no text is allowed in `<div>`"),
            ("<dl><div><div></div></div></dl>", "`<div>` is not allowed in `<div>`"),
            ("<dl compact></dl>", "`compact` is no longer part of HTML"),
        ],
    },
    Page {
        anchor: "the-dt-element",
        right: &[
            "<article><h1>FAQ</h1><dl><dt>What?</dt><dd>Data</dd></dl></article>",
            "<dl><dt>t</dt><dt><p>t</p></dt><dd>t</dd></dl>",
        ],
        wrong: &[
            (
                "<dl><dt><h2>t</h2></dt><dd>t</dd></dl>",
                "`<h2>` is not allowed inside `<dt>`, which allows no content that is heading",
            ),
            ("<dl><dt><nav>t</nav></dt><dd>t</dd></dl>", "`<nav>` is not allowed inside `<dt>`"),
            ("<ul><dt>t</dt></ul>", "`<dt>` is not allowed in `<ul>`"),
            ("<section><div><dt>t</dt></div></section>", "`<dt>` is not allowed in this `<div>`"),
        ],
    },
    Page {
        anchor: "the-dd-element",
        right: &[
            r#"<dl><dt><dfn>happiness</dfn></dt><dd class="sound">"/x/"</dd><dd><p>A state</p><dl><dt>t</dt><dd>t</dd></dl></dd></dl>"#,
            "<dl><dt>t</dt><dd><h3>t</h3><section>t</section></dd></dl>",
        ],
        wrong: &[
            ("<dl><dd>t</dd></dl>", "`<dd>` needs a `<dt>` before it"),
            ("<dl><div><dd>t</dd></div></dl>", "`<dd>` needs a `<dt>` before it"),
            (
                "<p><dd>t</dd></p>",
                "`<dd>` is not allowed in `<p>`: `<dd>` belongs in `<div>`, `<dl>`, `<template>`",
            ),
        ],
    },
    Page {
        anchor: "the-figure-element",
        right: &[
            r#"<figure id="l4"><figcaption>Listing 4</figcaption><pre><code>x</code></pre></figure>"#,
            r#"<figure><img src="bubbles.jpg" alt="Bubbles at work"><figcaption>Bubbles</figcaption></figure>"#,
            r#"<figure><video src="a.webm" controls></video></figure>"#,
            r#"<figure><figcaption>The castle</figcaption><figure><figcaption>"1423"</figcaption><img src="a" alt="A"></figure><figure><img src="b" alt="B"></figure></figure>"#,
            "<figure><p>A poem</p><p><cite>Jabber</cite></p></figure>",
        ],
        wrong: &[
            ("<p><figure>t</figure></p>", "`<figure>` is not allowed in `<p>`"),
            (
                "<figure><figcaption>a</figcaption><p>t</p><figcaption>b</figcaption></figure>",
                "`<figcaption>` belongs in `<figure>` only once",
            ),
            (
                "<figure><p>t</p><figcaption>a</figcaption><p>t</p></figure>",
                "`<p>` is out of order in `<figure>`",
            ),
        ],
    },
    Page {
        anchor: "the-figcaption-element",
        right: &[
            r#"<figure><img src="duck.jpg" alt="A duck"><figcaption><p>A duck</p><p><small>By us</small></p></figcaption></figure>"#,
            "<figure><figcaption><table><tr><td>t</td></tr></table></figcaption><p>t</p></figure>",
        ],
        wrong: &[
            (
                "<div><figcaption>t</figcaption></div>",
                "`<figcaption>` is not allowed in `<div>`: `<figcaption>` belongs in `<figure>`",
            ),
            (
                "<figure><div><figcaption>t</figcaption></div></figure>",
                "`<figcaption>` is not allowed in `<div>`",
            ),
        ],
    },
    Page {
        anchor: "the-main-element",
        right: &[
            "<body><header>t</header><main><h1>t</h1><p>t</p></main><footer>t</footer></body>",
            r#"<body><main>a</main><main hidden>b</main><main hidden="until-found">c</main></body>"#,
            "<body><form><div><main>t</main></div></form></body>",
            "<body><my-shell><main>t</main></my-shell></body>",
        ],
        wrong: &[
            (
                "<body><main>a</main><main>b</main></body>",
                "a page has one `<main>`; others must be `hidden`",
            ),
            (
                "<body><section><div><main>t</main></div></section></body>",
                "`<main>` is not allowed inside `<section>`",
            ),
            ("<main><main hidden>t</main></main>", "`<main>` is not allowed inside `<main>`"),
            ("<p><main>t</main></p>", "`<main>` is not allowed in `<p>`"),
        ],
    },
    Page {
        anchor: "the-search-element",
        right: &[
            r#"<header><search><form action="/find"><label for="q">Find</label><input type="search" id="q" name="q"><button>Go</button></form></search></header>"#,
            "<search><h2>Filters</h2><p>t</p></search>",
        ],
        wrong: &[
            ("<p><search>t</search></p>", "`<search>` is not allowed in `<p>`"),
            ("<search><main>t</main></search>", "`<main>` is not allowed inside `<search>`"),
            ("<serch>t</serch>", "did you mean `<search>`?"),
        ],
    },
    Page {
        anchor: "the-div-element",
        right: &[
            r#"<article lang="en-US"><h1>t</h1><div lang="en-GB"><p>t</p><p>t</p></div></article>"#,
            "<div>text <div><b>bold</b></div></div>",
        ],
        wrong: &[
            ("<p><div>t</div></p>", "`<div>` is not allowed in `<p>`"),
            ("<b><div>t</div></b>", "`<div>` is not allowed in `<b>`"),
            ("<ul><div>t</div></ul>", "`<div>` is not allowed in `<ul>`"),
            ("<table><div>t</div></table>", "`<div>` is not allowed in `<table>`"),
            (r#"<div align="left">t</div>"#, "`align` is no longer part of HTML"),
            ("<dvi>t</dvi>", "did you mean `<div>`?"),
        ],
    },
];
