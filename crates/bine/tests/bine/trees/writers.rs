//! Output formats of trees.

use bine::tree::{Expand, Feed, Node, PlainText, TableOfContents, Xhtml};
use bine::{Tree, raw, tree};

#[test]
fn writes_plain_text() {
    let page = tree! {
        <!DOCTYPE html>
        <html lang="en">
            <head><title>Not shown</title><style>"p { color: red }"</style></head>
            <body>
                <h1>Hops</h1>
                <p>"Green,   "<b>climbing</b>" & \n bitter."<br>Next line.</p>
                <ul><li>one</li><li></li><li><p>two</p><ol start="3"><li>three</li><li>four</li></ol></li></ul>
                <pre>"  as it\n  stands"</pre>
                <p><img src="/a.png" alt="a vine"> {raw("<i>markup</i>")}</p>
                <table><tbody><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></tbody></table>
            </body>
        </html>
    };
    assert_eq!(
        page.to_string_with(PlainText::default()),
        "Hops\n\nGreen, climbing & bitter.\nNext line.\n\n- one\n- \n- two\n  3. three\n  4. four\n\n  as it\n  stands\n\n\
         a vine\n\n1\t2\n3\t4\n"
    );
    assert_eq!(Tree::new().to_string_with(PlainText::default()), "");
}

#[test]
fn nests_headings_in_table_of_contents() {
    let page = tree! {
        <h2 id="a">First & more</h2><p>text</p>
        <section><h3 id="b">Below</h3><h4 id="c">Deep</h4></section>
        <h2>"without an id"</h2>
        <h2 id="d">Second</h2><h1 id="e">"Of a higher level"</h1><h6 id="f">Deepest</h6>
    };
    let contents = page.to_string_with(TableOfContents::default());
    let expected = tree! {
        <ol>
            <li><a href="#a">First & more</a>
                <ol><li><a href="#b">Below</a><ol><li><a href="#c">Deep</a></li></ol></li></ol>
            </li>
            <li><a href="#d">Second</a></li>
            <li><a href="#e">"Of a higher level"</a><ol><li><a href="#f">Deepest</a></li></ol></li>
        </ol>
    };
    assert_eq!(contents, expected.to_string());
    assert_eq!(tree!(<p>none</p>).to_string_with(TableOfContents::default()), "");
}

/// Articles of a news page. The last four lack a required part.
fn news() -> Tree {
    tree! {
        <main>
            <article id="one">
                <h2>One & only</h2>
                <p><time datetime="2026-11-20">yesterday</time> <a href="/else">elsewhere</a> <b>text</b></p>
            </article>
            <section>
                <article>
                    <h2><a href="two">Two</a></h2><time datetime="2026-11-21T10:30+01:00">now</time>
                </article>
            </section>
            <article>
                <h2><a href="never">Three</a></h2><a rel="nofollow bookmark" href="https://b.example/">x</a>
                <time>some day</time><time datetime="2026-01-01T00:00:00Z">first</time>
            </article>
            <article id="a"><time datetime="2026-11-20">no title</time></article>
            <article><h2>No address</h2><time datetime="2026-11-20">t</time></article>
            <article id="b"><h2>No time</h2></article>
            <article id="c"><h2>No time</h2><time datetime={"soon"}>soon</time></article>
        </main>
    }
}

fn feed() -> Feed {
    Feed {
        title: "News & more".into(),
        author: "A. Hop".into(),
        description: "".into(),
        page: "https://a.example/news/".into(),
        url: "https://a.example/news.xml".into(),
    }
}

#[test]
fn writes_articles_as_atom_feed() {
    assert_eq!(
        news().to_string_with(feed().atom()),
        r#"<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://a.example/news/">
<id>https://a.example/news.xml</id>
<title>News &amp; more</title>
<updated>2026-11-21T10:30:00+01:00</updated>
<author><name>A. Hop</name>
</author>
<link rel="self" href="https://a.example/news.xml" />
<link href="https://a.example/news/" />
<entry>
<id>https://a.example/news/#one</id>
<title>One &amp; only</title>
<updated>2026-11-20T00:00:00Z</updated>
<link href="https://a.example/news/#one" />
<content type="html">&lt;p&gt;&lt;time datetime=&quot;2026-11-20&quot;&gt;yesterday&lt;/time&gt; &lt;a href=&quot;/else&quot;&gt;elsewhere&lt;/a&gt; &lt;b&gt;text&lt;/b&gt;&lt;/p&gt;</content>
</entry>
<entry>
<id>https://a.example/news/two</id>
<title>Two</title>
<updated>2026-11-21T10:30:00+01:00</updated>
<link href="https://a.example/news/two" />
<content type="html">&lt;time datetime=&quot;2026-11-21T10:30+01:00&quot;&gt;now&lt;/time&gt;</content>
</entry>
<entry>
<id>https://b.example/</id>
<title>Three</title>
<updated>2026-01-01T00:00:00Z</updated>
<link href="https://b.example/" />
<content type="html">&lt;a rel=&quot;nofollow bookmark&quot; href=&quot;https://b.example/&quot;&gt;x&lt;/a&gt;&lt;time&gt;some day&lt;/time&gt;&lt;time datetime=&quot;2026-01-01T00:00:00Z&quot;&gt;first&lt;/time&gt;</content>
</entry>
</feed>
"#
    );
}

#[test]
fn writes_articles_as_rss_feed() {
    let rss = news().to_string_with(Feed { description: "What grows".into(), ..feed() }.rss());
    let head = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\"><channel>\n<title>News &amp; more</title>\n\
                <link>https://a.example/news/</link>\n<description>What grows</description>\n<item>\n\
                <title>One &amp; only</title>\n<link>https://a.example/news/#one</link>\n\
                <guid>https://a.example/news/#one</guid>\n<pubDate>Fri, 20 Nov 2026 00:00:00 +0000</pubDate>\n";
    assert!(rss.starts_with(head), "{rss}");
    assert!(rss.contains("<pubDate>Sat, 21 Nov 2026 10:30:00 +0100</pubDate>"));
    assert_eq!(rss.matches("<item>").count(), 3);
    assert!(rss.ends_with("</item>\n</channel></rss>\n"));
}

struct Stars(u8);

impl Expand for Stars {
    fn expand(&self) -> Tree {
        let stars = "*".repeat(usize::from(self.0));
        tree!(<b title={self.0}>{stars}</b>)
    }
}

#[test]
fn writes_custom_nodes_in_all_formats() {
    let page = tree!(<p>"rated "{Node::custom(Stars(3))}</p>);
    assert_eq!(page.to_string(), "<p>rated <b title=\"3\">***</b></p>");
    assert_eq!(page.to_string_with(PlainText::default()), "rated ***\n");
    assert_eq!(page.to_string_with(Xhtml::default()), page.to_string());
    assert_eq!(page.find("b").unwrap(), None);
}
