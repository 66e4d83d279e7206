//! Text cannot leave its place: any text in a page leaves its elements and attributes unchanged,
//! and a reader gets the same text back.

use std::iter;

use bine::{Page, Writer, html, raw};
use proptest::prelude::*;
use roxmltree::Document;

/// A placeholder in each place for text.
fn places(text: &str, letter: char) -> impl Page {
    html! {
        <!DOCTYPE html>
        <title>{text}</title>
        <p title={text} class="a" data-x={format_args!("{text}/{text}")}>{text}<b>{text}</b>"and "{text}</p>
        <a href={format_args!("/{text}")} title={Some(text)}>{format_args!("<{text}>")}</a>
        <textarea name={text}>{text}</textarea>
        {for part in [text, text] { <u lang={letter} class={part}>{letter}</u> }}
        <svg><text id={text}>{text}</text></svg>
        <br data-y={text}>
    }
}

/// A placeholder in each place for an address.
fn addresses(text: &str) -> impl Page {
    html! {
        <a href={text} ping={text}>a</a>
        <iframe src={format_args!("{text}")}></iframe>
        <form action={text}><button formaction={text}>b</button></form>
        <object data={text}></object>
        <img src={text} alt="">
        <svg><a xlink:href={text}>c</a></svg>
    }
}

/// A placeholder in each kind of place of a page in XML.
fn document(text: &str) -> impl Page {
    html! {
        <html lang="en">
            <head><title>{text}</title><script>{raw(text)}</script></head>
            <body title={text}><p>{text}</p><a href={format_args!("/{text}")}>"a"</a><svg><text>{text}</text></svg></body>
        </html>
    }
}

/// Tokens as a browser reads them (HTML, section 13.2.5, without error handling).
#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Open(String, Vec<(String, String)>),
    Close(String),
    Text(String),
}

fn read(page: impl Page) -> Vec<Piece> {
    let mut html = Vec::new();
    page.write(&mut Writer::new(&mut html));
    let html = String::from_utf8(html).unwrap();
    let mut rest = html.as_str();
    iter::from_fn(|| (!rest.is_empty()).then(|| piece(&mut rest))).collect()
}

fn piece(rest: &mut &str) -> Piece {
    let begins_tag = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic() || "/!?".contains(first))
    };
    let Some(tag) = rest.strip_prefix('<').filter(|tag| begins_tag(tag)) else {
        let later = rest.char_indices().skip(1).find(|&(_, letter)| letter == '<');
        let (text, after) = rest.split_at(later.map_or(rest.len(), |(index, _)| index));
        *rest = after;
        return Piece::Text(decoded(text));
    };
    if let Some(name) = tag.strip_prefix('/') {
        let (name, after) = name.split_once('>').unwrap();
        *rest = after;
        return Piece::Close(name.to_owned());
    }
    let end = tag.find([' ', '>']).unwrap();
    let (name, mut inside) = tag.split_at(end);
    let mut attributes = Vec::new();
    loop {
        inside = inside.trim_start_matches([' ', '/']);
        if let Some(after) = inside.strip_prefix('>') {
            *rest = after;
            return Piece::Open(name.to_owned(), attributes);
        }
        let end = inside.find(['=', ' ', '>']).unwrap();
        let (name, after) = inside.split_at(end);
        let Some(value) = after.strip_prefix("=\"") else {
            attributes.push((name.to_owned(), String::new()));
            inside = after;
            continue;
        };
        let (value, after) = value.split_once('"').unwrap();
        inside = after;
        attributes.push((name.to_owned(), decoded(value)));
    }
}

fn decoded(text: &str) -> String {
    let references =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    references
        .iter()
        .fold(text.to_owned(), |text, (reference, letter)| text.replace(reference, letter))
}

/// Parts of injection attempts, separated by bars.
const ATTEMPTS: &str = "<|>|\"|'|&|/|=| |\n|\0|`|{|}|\u{e4}|</|<!--|-->|]]>|<script>|</script>|</title>|</textarea>|onload=\
                        |javascript:|JAVA\tSCRIPT:|vbscript:|data:|image/|text/html,|&lt;|&#x3c;|&quot";

/// Arbitrary text, and injection attempts.
fn text() -> impl Strategy<Value = String> {
    let attempt = prop::sample::select(ATTEMPTS.split('|').collect::<Vec<_>>());
    let attempts = prop::collection::vec(attempt, 1..8).prop_map(|parts| parts.concat());
    prop_oneof![any::<String>(), attempts]
}

proptest! {
    #[test]
    fn text_cannot_leave_its_place(text in text(), letter: char) {
        // The markers mark the positions of the text and the letter.
        let (marker, mark) = ("\u{1}", '\u{2}');
        prop_assume!(!text.is_empty() && letter != '\u{1}' && !text.contains(['\u{1}', mark]));
        let filled = |part: &str| part.replace(mark, &letter.to_string()).replace(marker, &text);
        let expected: Vec<Piece> = read(places(marker, mark)).into_iter().map(|piece| match piece {
            Piece::Text(text) => Piece::Text(filled(&text)),
            Piece::Open(name, attributes) => {
                let attributes = attributes.into_iter().map(|(name, value)| (name, filled(&value)));
                Piece::Open(name, attributes.collect())
            }
            close @ Piece::Close(_) => close,
        }).collect();
        prop_assert_eq!(read(places(&text, letter)), expected);
    }

    #[test]
    fn xml_readers_get_the_same_text(text in text()) {
        let mut xml = Vec::new();
        let mut writer = Writer::new(&mut xml);
        writer.switch_to_xml();
        document(&text).write(&mut writer);
        drop(writer);
        let xml = String::from_utf8(xml).unwrap();
        let document = Document::parse(&xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
        // Characters that XML cannot represent are replaced (XML 1.0, section 2.2).
        let is_lost = |letter: char| matches!(letter, '\u{fffe}' | '\u{ffff}')
            || letter < ' ' && !"\t\n\r".contains(letter);
        let expected = text.replace(is_lost, "\u{fffd}");
        let find = |name| document.descendants().find(|node| node.tag_name().name() == name).unwrap();
        for place in ["title", "script", "p", "text"] {
            prop_assert_eq!(find(place).text().unwrap_or_default(), &expected, "{}", place);
        }
        prop_assert_eq!(find("body").attribute("title"), Some(&*expected));
        prop_assert_eq!(find("a").attribute("href"), Some(&*format!("/{expected}")));
        prop_assert_eq!(document.descendants().filter(roxmltree::Node::is_element).count(), 9);
    }

    #[test]
    fn addresses_cannot_run_scripts(text in text()) {
        for piece in read(addresses(&text)) {
            let Piece::Open(element, attributes) = piece else { continue };
            for (name, value) in attributes {
                // Normalize as a browser does (URL Standard, section 4.4).
                let seen = value.trim_start_matches(|letter| letter <= ' ').to_ascii_lowercase();
                let seen = seen.replace(['\t', '\n', '\r'], "");
                let runs = ["javascript:", "vbscript:", "data:"].iter().any(|one| seen.starts_with(one));
                let is_image = element == "img" && seen.starts_with("data:image/");
                prop_assert!(!runs || is_image, "{element} {name}: {value:?}");
            }
        }
    }
}
