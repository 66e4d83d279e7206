//! Examples for the body and its sections (HTML 4.3).

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        anchor: "the-body-element",
        right: &[
            "<body><p>t</p></body>",
            r#"<body>"text" <b>and more</b></body>"#,
            "<body onload={raw_code} onhashchange={raw_code} onbeforeunload={raw_code} ononline={raw_code}><p>t</p></body>",
        ],
        wrong: &[
            ("<body><li>t</li></body>", "`<li>` is not allowed in `<body>`"),
            (
                "<div><body></body></div>",
                "`<body>` is not allowed in `<div>`: `<body>` belongs in `<html>`",
            ),
            (
                r#"<body bgcolor="red"></body>"#,
                "`bgcolor` is no longer part of HTML: use CSS `background-color`",
            ),
            (r#"<body topmargin="0"></body>"#, "`topmargin` is no longer part of HTML"),
            ("<p onhashchange={raw_code}>t</p>", "`<p>` has no attribute `onhashchange`"),
        ],
    },
    Page {
        anchor: "the-article-element",
        right: &[
            r#"<article itemscope itemtype="https://schema.org/BlogPosting"><header><h2 itemprop="headline">Rule one</h2><p><time itemprop="datePublished" datetime="2026-11-21">today</time></p></header><p>t</p><footer><a itemprop="discussionUrl" href="?c=1">comments</a></footer></article>"#,
            r#"<article><h1>t</h1><section><h1>Comments</h1><article id="c1"><footer><p>By: <b>A</b></p></footer><p>t</p></article><article id="c2"><p>t</p></article></section></article>"#,
            r#"<article is="stock-widget"><h2>t</h2></article>"#,
        ],
        wrong: &[
            (
                "<p><article>t</article></p>",
                "`<article>` is not allowed in `<p>`: it takes phrasing content",
            ),
            ("<article><main>t</main></article>", "`<main>` is not allowed inside `<article>`"),
            (r#"<article pubdate="a">t</article>"#, "`<article>` has no attribute `pubdate`"),
        ],
    },
    Page {
        anchor: "the-section-element",
        right: &[
            "<article><hgroup><h2>Apples</h2><p>A fruit</p></hgroup><section><h3>Red</h3><p>t</p></section><section><h3>Green</h3><p>t</p></section></article>",
            r#"<body><section class="chapter"><h2>One</h2></section><section class="appendix"><h2>A</h2></section></body>"#,
        ],
        wrong: &[
            ("<span><section>t</section></span>", "`<section>` is not allowed in `<span>`"),
            ("<section><main>t</main></section>", "`<main>` is not allowed inside `<section>`"),
            (
                "<section><td>t</td></section>",
                "`<td>` is not allowed in `<section>`: `<td>` belongs in",
            ),
            ("<secton>t</secton>", "did you mean `<section>`?"),
        ],
    },
    Page {
        anchor: "the-nav-element",
        right: &[
            r#"<body><h1>Wiki</h1><nav><ul><li><a href="/">Home</a></li><li><a href="/new">New</a></li></ul></nav></body>"#,
            r#"<nav><h1>Where to</h1><p>North lies <a href="/blog">the blog</a></p></nav>"#,
            r#"<nav><p><a href="/">Home</a></p></nav>"#,
        ],
        wrong: &[
            ("<nav><main>t</main></nav>", "`<main>` is not allowed inside `<nav>`"),
            ("<p><nav>t</nav></p>", "`<nav>` is not allowed in `<p>`"),
            (r#"<nav><ul><a href="/">Home</a></ul></nav>"#, "`<a>` is not allowed in `<ul>`"),
        ],
    },
    Page {
        anchor: "the-aside-element",
        right: &[
            "<aside><h2>Switzerland</h2><p>A country</p></aside>",
            "<p>He <q>loved it</q></p><aside><q>loved it</q></aside>",
            r#"<body><aside><nav><h2>Blogroll</h2><ul><li><a href="/a">A</a></li></ul></nav><section><h2>t</h2></section></aside></body>"#,
        ],
        wrong: &[
            ("<aside><main>t</main></aside>", "`<main>` is not allowed inside `<aside>`"),
            ("<h1><aside>t</aside></h1>", "`<aside>` is not allowed in `<h1>`"),
        ],
    },
    Page {
        anchor: "the-h1,-h2,-h3,-h4,-h5,-and-h6-elements",
        right: &[
            "<body><h1>One</h1><h2>Two</h2><h3>Three</h3><h4>Four</h4><h5>Five</h5><h6>Six</h6></body>",
            r#"<h1>My <em>own</em> <img src="a.png" alt="A"> <a href="/">home</a></h1>"#,
        ],
        wrong: &[
            ("<h1><p>t</p></h1>", "`<p>` is not allowed in `<h1>`"),
            ("<h2><h3>t</h3></h2>", "`<h3>` is not allowed in `<h2>`"),
            ("<p><h4>t</h4></p>", "`<h4>` is not allowed in `<p>`"),
            ("<h5><ul></ul></h5>", "`<ul>` is not allowed in `<h5>`"),
            (r#"<h6 align="left">t</h6>"#, "`align` is no longer part of HTML"),
            ("<h7>t</h7>", "HTML has no element `<h7>`; did you mean"),
        ],
    },
    Page {
        anchor: "the-hgroup-element",
        right: &[
            "<hgroup><h1>Dr. Strange</h1><p>Or: how I learned</p></hgroup>",
            "<hgroup><p>Welcome to</p><h2>The Hall</h2><template></template><p>of hops</p></hgroup>",
        ],
        wrong: &[
            ("<hgroup><h1>a</h1><h2>b</h2></hgroup>", "`<hgroup>` has but one `<h1>` or `<h2>`"),
            ("<hgroup><p>t</p></hgroup>", "`<hgroup>` needs a `<h1>` or `<h2>`"),
            ("<hgroup><h1>t</h1><div>t</div></hgroup>", "`<div>` is not allowed in `<hgroup>`"),
            (r#"<hgroup>"text"<h1>t</h1></hgroup>"#, "no text is allowed in `<hgroup>`"),
            ("<hgroup><h1>t</h1><span>t</span></hgroup>", "`<span>` is not allowed in `<hgroup>`"),
        ],
    },
    Page {
        anchor: "the-header-element",
        right: &[
            "<header><p>Welcome to</p><h1>The Hall</h1></header>",
            r#"<header><hgroup><h1>t</h1><p>t</p></hgroup><dl><dt>Write to</dt><dd><a href="mailto:a@b">A</a></dd></dl></header>"#,
            r#"<body><header><h1>t</h1><nav><ul><li><a href="/">t</a></li></ul></nav></header></body>"#,
        ],
        wrong: &[
            ("<header><header>t</header></header>", "`<header>` is not allowed inside `<header>`"),
            (
                "<header><div><footer>t</footer></div></header>",
                "`<footer>` is not allowed inside `<header>`",
            ),
            (
                "<dl><dt><header>t</header></dt><dd>t</dd></dl>",
                "`<header>` is not allowed inside `<dt>`",
            ),
            ("<p><header>t</header></p>", "`<header>` is not allowed in `<p>`"),
        ],
    },
    Page {
        anchor: "the-footer-element",
        right: &[
            r#"<body><footer><a href="../">Back to all</a></footer><h1>t</h1><footer><a href="../">Back</a></footer></body>"#,
            "<article><p>t</p><footer>Posted <time>2026-11-21</time></footer></article>",
            r#"<footer><nav><section><h1>Articles</h1><p>t</p></section></nav><p><small>"(c) us"</small></p></footer>"#,
        ],
        wrong: &[
            ("<footer><header>t</header></footer>", "`<header>` is not allowed inside `<footer>`"),
            (
                "<footer><section><footer>t</footer></section></footer>",
                "`<footer>` is not allowed inside `<footer>`",
            ),
            ("<footer><main>t</main></footer>", "`<main>` is not allowed inside `<footer>`"),
            ("<em><footer>t</footer></em>", "`<footer>` is not allowed in `<em>`"),
        ],
    },
    Page {
        anchor: "the-address-element",
        right: &[
            r#"<address><a href="/people/ada">Ada</a> <br> <a href="mailto:ada@example.com">write</a></address>"#,
            r#"<footer><address>Ask <a href="mailto:a@b">Bob</a></address><p><small>t</small></p></footer>"#,
        ],
        wrong: &[
            (
                "<address><h2>t</h2></address>",
                "`<h2>` is not allowed inside `<address>`, which allows no content that is heading",
            ),
            (
                "<address><div><section>t</section></div></address>",
                "`<section>` is not allowed inside `<address>`, which allows no content that is sectioning",
            ),
            (
                "<address><footer>t</footer></address>",
                "`<footer>` is not allowed inside `<address>`",
            ),
            (
                "<address><address>t</address></address>",
                "`<address>` is not allowed inside `<address>`",
            ),
        ],
    },
];
