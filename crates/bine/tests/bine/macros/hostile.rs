//! Injection attacks have no effect in any place of a page: a real HTML parser finds only the
//! program's elements and attributes.
//!
//! The places and strings are those of OWASP's Cross Site Scripting Prevention Cheat Sheet, with
//! further strings of its Filter Evasion Cheat Sheet. Event handlers, `style`, `srcdoc` and the
//! content of `<script>` and `<style>` take no text at all: `refused/contexts.rs` and
//! `refused/script.rs`.

use bine::tree::{Element, Node};
use bine::{Page, Tree, Writer, html, tree};
use html5ever::tendril::TendrilSink as _;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use proptest::prelude::*;

const STRINGS: [&str; 48] = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=https://cdn.jsdelivr.net/gh/Moksh45/host-xss.rocks/index.js></SCRIPT>",
    "javascript:/*--></title></style></textarea></script></xmp><svg/onload='+/\"`/+/onmouseover=1/+/[*/[]/+alert(42);//'>",
    "<IMG SRC=\"javascript:alert('XSS');\">",
    "<IMG SRC=JaVaScRiPt:alert('XSS')>",
    "<IMG SRC=`javascript:alert(\"RSnake says, 'XSS'\")`>",
    "\\<a onmouseover=\"alert(document.cookie)\"\\>xxs link\\</a\\>",
    "<IMG \"\"\"><SCRIPT>alert(\"XSS\")</SCRIPT>\"\\>",
    "<img src=x onerror=\"&#0000106&#0000097&#0000118&#0000097&#0000115&#0000099&#0000114&#0000105&#0000112\">",
    "<a href=\"&#106;&#97;&#118;&#97;&#115;&#99;&#114;&#105;&#112;&#116;&#58;alert(1)\">Click Me!</a>",
    "<a href=\"&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74&#x3A&#x61\">Click Me</a>",
    "<a href=\"jav\tascript:alert('XSS');\">Click Me</a>",
    "jav&#x09;ascript:alert('XSS');",
    "jav\nascript:alert('XSS');",
    "jav\rascript:alert('XSS');",
    " &#14;  javascript:alert('XSS');",
    "\u{1}javascript:alert(1)",
    "\u{a0}javascript:alert(1)",
    "<SCRIPT/XSS SRC=\"http://xss.rocks/xss.js\"></SCRIPT>",
    "<BODY onload!#$%&()*~+-_.,:;?@[/|\\]^`=alert(\"XSS\")>",
    "<<SCRIPT>alert(\"XSS\");//\\<</SCRIPT>",
    "<SCRIPT SRC=http://xss.rocks/xss.js?< B >",
    "<SCRIPT SRC=//xss.rocks/.j>",
    "<IMG SRC=\"('XSS')\"",
    "<iframe src=http://xss.rocks/scriptlet.html <",
    "\\\";alert('XSS');//",
    "</script><script>alert('XSS');</script>",
    "</TITLE><SCRIPT>alert(\"XSS\");</SCRIPT>",
    "</textarea><img src=x onerror=alert(1)>",
    "<INPUT TYPE=\"IMAGE\" SRC=\"javascript:alert('XSS');\">",
    "<BODY BACKGROUND=\"javascript:alert('XSS')\">",
    "vbscript:msgbox(\"XSS\")",
    "livescript:[code]",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgnWFNTJyk8L3NjcmlwdD4=",
    "data:image/svg+xml,<svg onload=alert(1)>",
    "<svg/onload=alert('XSS')>",
    "<STYLE>@import'http://xss.rocks/xss.css';</STYLE>",
    "<META HTTP-EQUIV=\"refresh\" CONTENT=\"0;url=javascript:alert('XSS');\">",
    "<IFRAME SRC=# onmouseover=\"alert(document.cookie)\"></IFRAME>",
    "<!--[if gte IE 4]><SCRIPT>alert('XSS');</SCRIPT><![endif]-->",
    "--><script>alert(1)</script>",
    "--!><img src=x onerror=alert(1)>",
    "><script>alert(1)</script>",
    "\" onmouseover=\"alert(1)",
    "' onmouseover='alert(1)",
    "` onmouseover=`alert(1)",
    "x onmouseover=alert(1) ",
    "\u{bc}script\u{be}alert(\u{a2}XSS\u{a2})\u{bc}/script\u{be}",
];

/// Renders each place for text with `html!`, with `tree!`, and with nodes built by hand.
fn pages(text: &str) -> [Vec<u8>; 3] {
    let page = html! {
        <!DOCTYPE html>
        <html lang="en">
            <head><title>{text}</title><meta name="description" content={text}></head>
            <body class={text}>
                <p title={text} data-x={text}>{text}<b>{text}</b></p>
                <textarea name={text}>{text}</textarea>
                <select><option value={text}>{text}</option></select>
                <table><caption>{text}</caption><tbody><tr><td headers={text}>{text}</td></tr></tbody></table>
                <a href={text} ping={text}>{text}</a>
                <form action={text}><button formaction={text}>b</button></form>
                <iframe src={text}></iframe><object data={text}></object>
                <img src={text} alt={text} srcset={text}>
                <svg><a xlink:href={text}><text>{text}</text></a></svg>
            </body>
        </html>
    };
    let tree = tree! {
        <!DOCTYPE html>
        <html lang="en">
            <head><title>{text}</title><meta name="description" content={text}></head>
            <body class={text}>
                <p title={text} data-x={text}>{text}<b>{text}</b></p>
                <textarea name={text}>{text}</textarea>
                <select><option value={text}>{text}</option></select>
                <table><caption>{text}</caption><tbody><tr><td headers={text}>{text}</td></tr></tbody></table>
                <a href={text} ping={text}>{text}</a>
                <form action={text}><button formaction={text}>b</button></form>
                <iframe src={text}></iframe><object data={text}></object>
                <img src={text} alt={text} srcset={text}>
                <svg><a xlink:href={text}><text>{text}</text></a></svg>
            </body>
        </html>
    };
    [written(page), written(tree), written(by_hand(text))]
}

/// A tree with text in dangerous places: in a comment, in a script, and in event handlers.
fn by_hand(text: &str) -> Tree {
    let mut script = Element::new("script").unwrap();
    script.push(text.to_owned());
    let mut style = Element::new("STYLE").unwrap();
    style.push(text.to_owned());
    let mut link = Element::new("a").unwrap();
    for name in ["onclick", "OnMouseOver", "style", "srcdoc"] {
        link.set_attribute(name, text).unwrap_err();
    }
    for name in ["href", "title"] {
        link.set_attribute(name, text).unwrap();
    }
    link.push(Node::comment(text.to_owned()));
    let nodes = [Node::comment(text.to_owned()), link.into(), style.into(), script.into()];
    let mut tree: Tree = nodes.into_iter().collect();
    for name in ["title", "textarea", "iframe", "noscript", "xmp", "svg", "select", "template"] {
        let mut element = Element::new(name).unwrap();
        element.push(Node::comment(text.to_owned()));
        element.push(text.to_owned());
        element.set_attribute("title", text).unwrap();
        tree.push(element);
    }
    tree
}

fn written(page: impl Page) -> Vec<u8> {
    let mut markup = Vec::new();
    page.write(&mut Writer::new(&mut markup));
    markup
}

/// Returns the elements of a page with names of attributes, and comments. Executable addresses are
/// marked.
fn skeleton(markup: &[u8]) -> Vec<String> {
    let dom = parse_document(RcDom::default(), ParseOpts::default());
    let dom = dom.from_utf8().one(markup);
    let mut bones = Vec::new();
    gather(&dom.document, &mut bones);
    bones
}

fn gather(node: &Handle, bones: &mut Vec<String>) {
    match &node.data {
        NodeData::Element { name, attrs, .. } => {
            let mut bone = name.local.to_string();
            for attribute in attrs.borrow().iter() {
                bone.push(' ');
                bone.push_str(&attribute.name.local);
                if runs(&name.local, &attribute.name.local, &attribute.value) {
                    bone.push_str(" runs");
                }
            }
            bones.push(bone);
            // The content of a script may only be text.
            if ["script", "style"].contains(&&*name.local) {
                bones.push(format!("with {} nodes", node.children.borrow().len()));
            }
        }
        NodeData::Comment { .. } => bones.push("comment".into()),
        NodeData::Text { .. } => return,
        _ => {}
    }
    for child in node.children.borrow().iter() {
        gather(child, bones);
    }
    bones.push("end".into());
}

/// Whether a browser would execute this address (URL Standard, section 4.4).
fn runs(element: &str, attribute: &str, value: &str) -> bool {
    let addresses = ["href", "ping", "action", "formaction", "src", "data"];
    let seen = value.trim_start_matches(|letter| letter <= ' ').replace(['\t', '\n', '\r'], "");
    let seen = seen.to_ascii_lowercase();
    let is_image = element == "img" && seen.starts_with("data:image/");
    let schemes = ["javascript:", "vbscript:", "data:"];
    addresses.contains(&attribute)
        && !is_image
        && schemes.iter().any(|scheme| seen.starts_with(scheme))
}

fn skeletons(text: &str) -> [Vec<String>; 3] {
    pages(text).map(|markup| skeleton(&markup))
}

#[test]
fn attack_strings_have_no_effect_in_any_place() {
    let expected = skeletons("harmless");
    for text in STRINGS {
        assert_eq!(skeletons(text), expected, "{text}");
    }
}

#[test]
fn attack_strings_are_invalid_names() {
    for text in STRINGS {
        assert!(Element::new(text).is_err(), "{text}");
        let mut element = Element::new("p").unwrap();
        let is_taken = element.set_attribute(text, true).is_ok();
        assert!(!is_taken || !text.contains([' ', '"', '\'', '<', '>', '/', '=']), "{text}");
    }
}

proptest! {
    #[test]
    fn text_adds_nothing_to_a_page(
        text: String,
        parts in prop::collection::vec(prop::sample::select(STRINGS.as_slice()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let expected = skeletons("harmless");
        prop_assert_eq!(&skeletons(&text), &expected);
        // Attack strings in a row, from any position.
        let joined = parts.concat();
        let places: Vec<usize> = (0..=joined.len()).filter(|place| joined.is_char_boundary(*place)).collect();
        prop_assert_eq!(&skeletons(&joined[*cut.get(&places)..]), &expected);
    }
}
