//! Examples for text-level elements (HTML 4.5, 4.6).

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        anchor: "the-a-element",
        right: &[
            r#"<nav><ul><li><a href="/">Home</a></li><li><a>Here</a></li></ul></nav>"#,
            r#"<aside><a href="/ad" ping="/seen" rel="nofollow sponsored"><section><h1>Buy</h1><p>t</p></section></a></aside>"#,
            r#"<p><a href="/a" target="example" rel="noopener" hreflang="fr" type="text/html" referrerpolicy="no-referrer">t</a></p>"#,
            r#"<a href="/report.pdf" download>t</a><a href="/r" download="report.pdf">t</a>"#,
            r#"<a href="/help" rel="help" target="_blank"><img src="a.png" alt="Help"></a>"#,
        ],
        wrong: &[
            (r#"<a target="_blank">t</a>"#, "`<a>` has `target` only beside `href`"),
            (r#"<a download="a.pdf">t</a>"#, "`<a>` has `download` only beside `href`"),
            (r#"<a itemprop="url">t</a>"#, "`<a>` needs `href` beside `itemprop`"),
            (r#"<a href="/"><b><a href="/b">t</a></b></a>"#, "`<a>` is not allowed inside `<a>`"),
            ("<a><a>t</a></a>", "`<a>` is not allowed inside `<a>`"),
            (
                r#"<a href="/"><button>t</button></a>"#,
                "`<button>` is not allowed inside `<a>`, which allows no content that is interactive",
            ),
            (
                r#"<a href="/"><span><input name="a"></span></a>"#,
                "`<input>` is not allowed inside `<a>`",
            ),
            (
                r#"<a href="/"><video controls></video></a>"#,
                "`<video>` is not allowed inside `<a>`",
            ),
            (
                r#"<a href="/"><b tabindex="0">t</b></a>"#,
                "`<b>` with `tabindex` is not allowed inside `<a>`",
            ),
            (
                r#"<p><a href="/"><div>t</div></a></p>"#,
                "`<div>` is not allowed in `<a>`: it takes phrasing content",
            ),
            (r#"<a herf="/">t</a>"#, "did you mean `href`?"),
            (r#"<a href="/" hreflang="en_US">t</a>"#, "`hreflang` takes the tag of a language"),
            (r#"<a href="/" referrerpolicy="never">t</a>"#, "`referrerpolicy` takes"),
            (r#"<a name="top">t</a>"#, "`name` is no longer part of HTML: use `id`"),
            (r#"<a rev="made" href="/">t</a>"#, "`rev` is no longer part of HTML"),
        ],
    },
    Page {
        anchor: "the-em-element",
        right: &[
            "<p><em>Cats</em> are <em>very <em>cute</em></em> animals</p>",
            "I must say I <em>adore</em> lemonade",
        ],
        wrong: &[(
            "<em><p>t</p></em>",
            "`<p>` is not allowed in `<em>`: it takes phrasing content",
        )],
    },
    Page {
        anchor: "the-strong-element",
        right: &[
            "<h1>Chapter: <strong>The Praxis</strong></h1>",
            "<p><strong>Warning <strong>Avoid the ducks</strong></strong></p>",
            "<ul><li><p><strong>Turn off the oven</strong></p></li></ul>",
        ],
        wrong: &[
            ("<strong><ul></ul></strong>", "`<ul>` is not allowed in `<strong>`"),
            ("<ul><strong>t</strong></ul>", "`<strong>` is not allowed in `<ul>`"),
        ],
    },
    Page {
        anchor: "the-small-element",
        right: &[
            "<dl><dt>Single room</dt><dd>199 <small>breakfast included</small></dd></dl>",
            "<p><strong><small>Use at your own risk</small></strong></p>",
        ],
        wrong: &[("<small><div>t</div></small>", "`<div>` is not allowed in `<small>`")],
    },
    Page {
        anchor: "the-s-element",
        right: &["<p>Price: <s>4</s> <strong>2</strong></p>"],
        wrong: &[
            ("<s><p>t</p></s>", "`<p>` is not allowed in `<s>`"),
            ("<strike>t</strike>", "`<strike>` is no longer part of HTML: use `del` or `s`"),
        ],
    },
    Page {
        anchor: "the-cite-element",
        right: &[
            "<p>My favorite book is <cite>Hops</cite> by A</p>",
            r#"<p><cite><a href="/">The Declaration</a></cite></p>"#,
        ],
        wrong: &[(
            "<cite><blockquote>t</blockquote></cite>",
            "`<blockquote>` is not allowed in `<cite>`",
        )],
    },
    Page {
        anchor: "the-q-element",
        right: &[
            "<p>He said <q>it takes <q>longer</q></q></p>",
            r#"<p>Its mission is <q cite="https://example.org/">to lead</q></p>"#,
        ],
        wrong: &[
            ("<q><p>t</p></q>", "`<p>` is not allowed in `<q>`"),
            (r#"<q cit="/">t</q>"#, "did you mean `cite`?"),
        ],
    },
    Page {
        anchor: "the-dfn-element",
        right: &[
            r#"<p>The <dfn id="gdo"><abbr title="Door Opener">GDO</abbr></dfn> opens</p>"#,
            r#"<p><dfn title="bine">A stem</dfn></p>"#,
        ],
        wrong: &[
            ("<dfn>a <dfn>b</dfn></dfn>", "`<dfn>` is not allowed inside `<dfn>`"),
            ("<dfn><i><dfn>b</dfn></i></dfn>", "`<dfn>` is not allowed inside `<dfn>`"),
            ("<dfn><p>t</p></dfn>", "`<p>` is not allowed in `<dfn>`"),
        ],
    },
    Page {
        anchor: "the-abbr-element",
        right: &[
            r##"<p>The <a href="#w"><abbr title="Working Group">WG</abbr></a> and <abbr>W3C</abbr></p>"##,
        ],
        wrong: &[
            ("<abbr><div>t</div></abbr>", "`<div>` is not allowed in `<abbr>`"),
            ("<acronym>t</acronym>", "`<acronym>` is no longer part of HTML: use `abbr`"),
        ],
    },
    Page {
        anchor: "the-ruby-element",
        right: &[
            "<ruby>B<rt>a</rt></ruby>",
            r#"<p><ruby>B<rt>a</rt>C<rt lang="ja">b</rt></ruby></p>"#,
            "<ruby><ruby>B<rt>a</rt></ruby><rt>b</rt></ruby>",
        ],
        wrong: &[
            ("<ruby><p>t</p><rt>a</rt></ruby>", "`<p>` is not allowed in `<ruby>`"),
            ("<ruby><rb>B</rb><rt>a</rt></ruby>", "`<rb>` is no longer part of HTML"),
            ("<ruby>B<rtc></rtc></ruby>", "`<rtc>` is no longer part of HTML"),
        ],
    },
    Page {
        anchor: "the-rt-element",
        right: &["<ruby>B<rt>one</rt><rt>two</rt></ruby>", "<ruby>B<rt><b>a</b></rt></ruby>"],
        wrong: &[
            ("<p><rt>t</rt></p>", "`<rt>` is not allowed in `<p>`"),
            ("<ruby>B<rt><p>t</p></rt></ruby>", "`<p>` is not allowed in `<rt>`"),
        ],
    },
    Page {
        anchor: "the-rp-element",
        right: &[r#"<ruby>OJ<rp>"("</rp><rt>Orange Juice</rt><rp>")"</rp></ruby>"#],
        wrong: &[
            (r#"<span><rp>"("</rp></span>"#, "`<rp>` is not allowed in `<span>`"),
            (
                r#"<ruby>B<rp><b>"("</b></rp><rt>a</rt></ruby>"#,
                "`<b>` is not allowed in `<rp>`: it takes text",
            ),
        ],
    },
    Page {
        anchor: "the-data-element",
        right: &[
            r#"<p>Now: <data value="UPC:0220">Apple Cider</data></p>"#,
            r#"<table><tbody><tr><td><data value="8.5">eight and a half</data></td></tr></tbody></table>"#,
        ],
        wrong: &[
            ("<data>t</data>", "`<data>` needs `value`"),
            (r#"<data value="1"><p>t</p></data>"#, "`<p>` is not allowed in `<data>`"),
        ],
    },
    Page {
        anchor: "the-time-element",
        right: &[
            r#"<p>It was <time datetime="2006-09-23">a Saturday</time></p>"#,
            r#"<time>"2011-11"</time><time datetime="2011-11">t</time><time datetime="11-18">t</time>"#,
            r#"<time datetime="14:54">t</time><time datetime="14:54:39">t</time><time datetime="14:54:39.929">t</time>"#,
            r#"<time datetime="2011-11-18T14:54">t</time><time datetime="2011-11-18 14:54:39.929">t</time>"#,
            r#"<time datetime="Z">t</time><time datetime="+0000">t</time><time datetime="-08:00">t</time>"#,
            r#"<time datetime="2011-11-18T14:54Z">t</time><time datetime="2011-11-18 06:54:39.929-0800">t</time>"#,
            r#"<time datetime="2011-W47">t</time><time datetime="2011">t</time><time datetime="0001">t</time>"#,
            r#"<time datetime="PT4H18M3S">t</time><time datetime="4h 18m 3s">t</time>"#,
        ],
        wrong: &[
            (r#"<time datetime="18.11.2011">t</time>"#, "`datetime` takes a date, `2026-11-21`"),
            (r#"<time datetime="2011-02-29">t</time>"#, "not `2011-02-29`"),
            (r#"<time datetime="2011-11-18T24:00">t</time>"#, "not `2011-11-18T24:00`"),
            (r#"<time datetime="5pm">t</time>"#, "`datetime` takes"),
            ("<time datetime>t</time>", "`datetime` needs a value"),
            (r#"<time pubdate="a">t</time>"#, "`<time>` has no attribute `pubdate`"),
            ("<time><div>t</div></time>", "`<div>` is not allowed in `<time>`"),
        ],
    },
    Page {
        anchor: "the-code-element",
        right: &[
            r#"<p>Call <code>"activate()"</code></p>"#,
            r#"<pre><code class="language-rust">x</code></pre>"#,
        ],
        wrong: &[
            ("<code><pre>t</pre></code>", "`<pre>` is not allowed in `<code>`"),
            ("<tt>t</tt>", "`<tt>` is no longer part of HTML: use `code`"),
        ],
    },
    Page {
        anchor: "the-var-element",
        right: &[
            "<p>If there are <var>n</var> pipes</p>",
            r#"<figure><math><mi>a</mi><mo>"="</mo><msqrt><mi>b</mi></msqrt></math></figure>"#,
        ],
        wrong: &[
            ("<var><p>t</p></var>", "`<p>` is not allowed in `<var>`"),
            ("<math><mii>a</mii></math>", "`<math>` has no element `<mii>`; did you mean"),
        ],
    },
    Page {
        anchor: "the-samp-element",
        right: &[
            "<p>It said <samp>Too much cheese</samp></p>",
            r#"<pre><samp><span class="prompt">"$"</span> <kbd>ls</kbd></samp></pre>"#,
        ],
        wrong: &[("<samp><ol></ol></samp>", "`<ol>` is not allowed in `<samp>`")],
    },
    Page {
        anchor: "the-kbd-element",
        right: &[
            "<p>Press <kbd><kbd>Shift</kbd>+<kbd>F3</kbd></kbd></p>",
            "<p>Choose <kbd><samp>File</samp></kbd></p>",
        ],
        wrong: &[("<kbd><div>t</div></kbd>", "`<div>` is not allowed in `<kbd>`")],
    },
    Page {
        anchor: "the-sub-and-sup-elements",
        right: &[
            "<p>Water is H<sub>2</sub>O and <var>m</var><var>c</var><sup>2</sup></p>",
            r#"<p><span lang="fr"><abbr>M<sup>lle</sup></abbr></span> <var>x<sub><var>i</var></sub></var></p>"#,
        ],
        wrong: &[
            ("<sub><p>t</p></sub>", "`<p>` is not allowed in `<sub>`"),
            ("<sup><section>t</section></sup>", "`<section>` is not allowed in `<sup>`"),
        ],
    },
    Page {
        anchor: "the-i-element",
        right: &[r#"<p>The <i class="taxonomy" lang="la">Felis</i> is cute</p>"#],
        wrong: &[("<i><h2>t</h2></i>", "`<h2>` is not allowed in `<i>`")],
    },
    Page {
        anchor: "the-b-element",
        right: &[
            r#"<article><h2>t</h2><p><b class="lede">Six kittens</b> and a <b>rat</b></p></article>"#,
        ],
        wrong: &[
            ("<b><p>t</p></b>", "`<p>` is not allowed in `<b>`"),
            ("<big>t</big>", "`<big>` is no longer part of HTML: use CSS `font-size`"),
        ],
    },
    Page {
        anchor: "the-u-element",
        right: &[r#"<p>The <u class="spelling">see</u> is full of fish</p>"#],
        wrong: &[("<u><table></table></u>", "`<table>` is not allowed in `<u>`")],
    },
    Page {
        anchor: "the-mark-element",
        right: &[
            r#"<blockquote lang="en-GB"><p>Look <mark>around</mark></p></blockquote>"#,
            r#"<pre><code>var i = <mark>"1.1"</mark></code></pre>"#,
        ],
        wrong: &[("<mark><p>t</p></mark>", "`<p>` is not allowed in `<mark>`")],
    },
    Page {
        anchor: "the-bdi-element",
        right: &[
            "<ul><li>User <bdi>{name}</bdi> wrote 5</li></ul>",
            r#"<bdi lang="" dir="auto">t</bdi>"#,
        ],
        wrong: &[
            ("<bdi><div>t</div></bdi>", "`<div>` is not allowed in `<bdi>`"),
            (r#"<bdi dir="up">t</bdi>"#, "`dir` takes one of"),
        ],
    },
    Page {
        anchor: "the-bdo-element",
        right: &[
            r#"<p>"Juice" becomes <bdo dir="rtl">Juice</bdo></p>"#,
            "<bdo dir={direction}>t</bdo>",
        ],
        wrong: &[
            ("<bdo>t</bdo>", "`<bdo>` needs `dir`"),
            (r#"<bdo dir="auto">t</bdo>"#, "`dir` takes one of `ltr`, `rtl`, not `auto`"),
        ],
    },
    Page {
        anchor: "the-span-element",
        right: &[
            r#"<p>We call it <span lang="fr">sirop</span></p>"#,
            r#"<pre><code><span class="keyword">for</span></code></pre>"#,
        ],
        wrong: &[
            (
                "<span><div>t</div></span>",
                "`<div>` is not allowed in `<span>`: it takes phrasing content",
            ),
            ("<span><li>t</li></span>", "`<li>` is not allowed in `<span>`"),
            (
                r#"<font color="red">t</font>"#,
                "`<font>` is no longer part of HTML: use CSS `font` and `color`",
            ),
        ],
    },
    Page {
        anchor: "the-br-element",
        right: &[
            "<p>P Sherman<br>42 Wallaby Way<br>Sydney</p>",
            r#"<p><label>Name: <input name="n"></label><br></p>"#,
        ],
        wrong: &[
            (r#"<p>a<br clear="all">b</p>"#, "`clear` is no longer part of HTML"),
            ("<p>a</br>b</p>", "`<br>` is void"),
            ("<ul><br></ul>", "`<br>` is not allowed in `<ul>`"),
        ],
    },
    Page {
        anchor: "the-wbr-element",
        right: &["<p>there<wbr>is<wbr>no<wbr>way</p>"],
        wrong: &[("<table><wbr></table>", "`<wbr>` is not allowed in `<table>`")],
    },
];
