//! Decides what must be said about style sheets that CSS does not know, and how those are written that it knows.

use proptest::prelude::*;

use super::parse::parse;
use super::tree::Item;
use super::write::{Names, write};
use super::*;
use crate::expansion::Expansion;
use crate::sample::Sample;

fn site(content: &str) -> impl Fn(&crate::token::Token, &str) -> Result<String, String> {
    let content = content.to_owned();
    move |_, _| Ok(content.clone())
}

/// What `css!` says of `source`: a line for each fault, the token and what is said about it.
#[track_caller]
fn check(source: &str, expected: &str) {
    let sample = Sample::new(&format!("[bine] {source}"));
    let expansion = css(&sample.tokens, &Site { file: "here", read: &site("") });
    assert_eq!(sample.tell(&expansion.faults), expected.replace("\n         ", "\n"), "{source}");
}

/// The same of a file, by line and column.
#[track_caller]
fn check_file(content: &str, expected: &str) {
    let (expansion, _) = of_file("[bine] \"a.css\"", content);
    let told: Vec<_> = expansion.faults.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(told.join("\n"), expected.replace("\n         ", "\n"), "{content}");
}

fn of_file(source: &str, content: &str) -> (Expansion, Sample) {
    let sample = Sample::new(source);
    (css_file(&sample.tokens, &Site { file: "here", read: &site(content) }), sample)
}

/// The text that a sheet becomes.
fn shortened(content: &str, ending: Option<&str>) -> String {
    let pieces = lex(content);
    let items = parse(&pieces, &mut Vec::new());
    write(&items, &Names::of(&items, ending.map(str::to_owned)))
}

/// What is right, one statement each.
const RIGHT: [&str; 44] = [
    ".card { color: red; background: #fff url(\"a.svg\") no-repeat; }",
    "a:hover, a:focus-visible { text-decoration: underline 2px; }",
    ".card { & .title { font-size: 2rem; } &:hover { opacity: .5; } > p { margin: 0 auto; } }",
    ".card { color: red; .title, & > b { color: blue } @media print { display: none; } }",
    "@media (min-width: 40rem) and (prefers-color-scheme: dark) { body { margin: 0 } }",
    "@media screen and (40rem <= width < 60rem), not print { p { color: CanvasText } }",
    "@media (hover) { a { color: inherit; } }",
    "@media not (max-width: 3px) { a { color: inherit; } }",
    "@media ((min-width: 1px) or (min-height: 1px)) { a { top: 0 } }",
    "@container card (inline-size > 30ch) { p { color: red } }",
    "@container style(--wide: yes) { p { color: red } }",
    "@supports (display: grid) and (not (display: inline-grid)) { p { display: grid } }",
    "@layer base, parts;",
    "@layer base { p { margin-block: 1lh } }",
    "@keyframes turn { from { rotate: 0deg } 50%, 60% { rotate: 90deg } to { rotate: 1turn } }",
    "@font-face { font-family: Own; src: local(\"Own\"), url(own.woff2) format(\"woff2\"); unicode-range: U+0025-00FF, u+4?? }",
    "@property --share { syntax: \"<percentage>\"; inherits: false; initial-value: 0% }",
    "@page :first { margin: 2cm; size: a4; @top-left { content: \"x\" } }",
    "@counter-style dots { system: cyclic; symbols: \"*\"; suffix: \" \" }",
    "@starting-style { p { opacity: 0 } }",
    "@scope (.card) to (.content) { img { border: 1px solid black } }",
    "@-moz-document url-prefix() { p { -moz-any: thing } }",
    ":root { --color: #12e; --any: { a: b } ! [x]; --empty:; }",
    "p { color: var(--color, rgb(1 2 3 / 50%)); width: calc(100% - 2 * var(--gap)); }",
    "p { -webkit-line-clamp: 3; -ms-anything: at all }",
    "p { background: red; background: linear-gradient(in oklch, red, #abcd) }",
    "p { grid-template-columns: [start] 1fr minmax(10px, auto) [end]; grid-area: 1 / mine }",
    "p { transition: opacity 200ms cubic-bezier(.1, -.6, .2, 0), --x 1s; animation: turn 2s }",
    "p { width: 50% !important; height: 1e3px; margin: -1px +2px }",
    "p { font: italic 12px/1.5 Own, sans-serif; content: \"\\201C\" attr(title) }",
    "p { word-wrap: break-word; overflow-wrap: break-word }",
    "p { COLOR: Red; Display: BLOCK; image-resolution: 2x }",
    "li:nth-child(2n + 1 of .a, .b) { top: 0 } li:nth-child(odd) { top: 0 } li:nth-child(-n+3) { top: 0 }",
    "p:not(.a, :is(b, i)):has(> img) { top: 0 }",
    "p::before, p:before, p::part(x), p::-webkit-thing { top: 0 }",
    "a[href], a[href^=\"http\" i], a[lang|=en], [data-x=y] { top: 0 }",
    "svg path, my-element, math mi, svg|a, *|*, * + p ~ b { top: 0 }",
    "html:dir(rtl) ::selection { color: Highlight }",
    "p { transform: translateX(10px) rotate(45deg); filter: blur(2px) }",
    "p { inset: 0 auto auto 0; aspect-ratio: 16 / 9 }",
    ".a/**/.b { top/**/: 1px/**/ 2px }",
    "p { fill: currentColor }",
    "p { }",
    ";",
];

#[test]
fn what_is_right_is_not_complained_of() {
    for source in RIGHT {
        check_file(source, "");
    }
}

#[test]
fn an_unknown_name_is_told_with_the_nearest() {
    check(
        ".a { colr: red; back-ground: red }",
        "colr: CSS has no property `colr`; did you mean `color`?; one of your own begins with `--`
         back: CSS has no property `back-ground`; did you mean `background`?; one of your own begins with `--`",
    );
    check(
        "secton { }",
        "secton: HTML has no element `secton`; did you mean `section`?; a class is `.secton`",
    );
    check("a:hovr { }", "hovr: CSS has no pseudo-class `:hovr`; did you mean `:hover`?");
    check("a::hover { }", "hover: CSS has no pseudo-element `::hover`; did you mean `:hover`?");
    check("a:nott(b) { }", "nott: CSS has no pseudo-class `:nott`; did you mean `:not`?");
    check("a:not { }", "not: `:not` takes an argument: `:not(..)`");
    check("a:hover(b) { }", "hover: `:hover` takes no argument");
    check("@medai print { }", "@: CSS has no rule `@medai`; did you mean `@media`?");
    check("a { width: clac(1px) }", "clac: CSS has no function `clac()`; did you mean `calc`?");
    check(
        "@media (min-widht: 1px) { }",
        "min: `@media` knows no feature `min-widht`; did you mean `width`?",
    );
    check(
        "@font-face { font-famly: a }",
        "font: `@font-face` has no `font-famly`; did you mean `font-family`?",
    );
}

#[test]
fn a_value_that_is_none_is_told_with_what_it_may_be() {
    check(
        "a { position: abslute }",
        "abslute: `position` has no word `abslute`; did you mean `absolute`?; its words are `absolute`, `fixed`, `relative`, `static`, `sticky`",
    );
    check(
        "a { color: redd }",
        "redd: `color` has no word `redd`; did you mean `red`?; it takes a color",
    );
    check(
        "a { padding: auto }",
        "auto: `padding` has no word `auto`; it has none but what every property takes, as `inherit`",
    );
    check(
        "a { color: #ff }",
        "#: `#ff` is no color: it has 3, 4, 6 or 8 hexadecimal digits behind its `#`",
    );
    check("a { width: 12xp }", "12xp: CSS has no unit `xp`; did you mean `px`?");
    check(
        "a { color: var(x) }",
        "x: `var(..)` takes the name of a custom property, which begins with `--`",
    );
    check(
        "a { top: 0 !importnat }",
        "importnat: only `!important` begins with `!`, and it ends the value",
    );
    check("a { top: 0 = 1px }", "=: `=` has no place in a value");
}

#[test]
fn what_is_missing_is_told_where_it_is() {
    check("a { color: red\n margin: 0 }", "margin: a `;` is missing before `margin`");
    check("a { color: red\n .b { top: 0 } }", ".: a `;` is missing before `.`");
    check("a { color red }", "red: a `:` is missing behind `color`");
    check("a { color: ; }", "color: `color` has no value");
    check("a { color }", "color: a declaration is `name: value;`: what is `color` to be?");
    check(
        "{ top: 0 }",
        "{ top: 0 }: a rule begins with a selector: which elements is this block for?",
    );
    check("a, { }", "{ }: a selector is missing between commas");
    check("a > { }", ">: `>` stands between two selectors: behind it is none");
    check("@keyframes { }", "@: `@keyframes` needs a name");
    check("@property x { }", "@: `@property` needs a name that begins with `--`");
    check("@media print;", "@: `@media` needs a block, `{ .. }`");
    check_file("a { top: 0", "a.css:1:3: this block has no `}`");
    check_file("a { } }", "a.css:1:7: `}` closes nothing: no block is open here");
    check_file("a { content: \"x\n }", "a.css:1:14: this string has no end on its line");
    check_file("a { top: calc(1px; }", "a.css:1:20: `)` is missing before this");
}

#[test]
fn what_stands_in_the_wrong_place_is_told() {
    check("color: red;", "color: a declaration stands in a rule: `selector { color: .. }`");
    check("@font-face { a { } }", "a: no rule may stand here, only `name: value;`");
    check(
        "@keyframes x { top: 0; 5px { } }",
        "top: a declaration stands in a step: `50% { top: .. }`\n5px: a step of an animation is `from`, `to` or a share such as `50%`",
    );
    check(
        "@import \"a.css\";",
        "@: `@import` may not stand in a sheet that is joined with others: name the other file in a `css_file!`",
    );
    check("a:nth-child(2m) { }", "2m: a place is `odd`, `even`, a number, or as `2n + 1`");
    check("a[href=] { }", "href: an attribute is selected by `[name]` or `[name=\"value\"]`");
    check(". a { }", ".: the name of a class is missing behind this");
    check(
        "@media prnt { }",
        "prnt: `@media` asks for nothing called `prnt`; did you mean `print`?; what it measures stands in parentheses",
    );
}

#[test]
fn what_is_said_twice_or_in_an_older_way_is_told() {
    check("a { top: 0; top: 1px; top: 0 }", "top: this block says the same of `top` already");
    check(
        "a { word-wrap: normal }",
        "word: `word-wrap` is an older spelling: write `overflow-wrap`, or both",
    );
}

#[test]
fn several_mistakes_are_told_at_once_in_the_order_of_the_file() {
    check_file(
        "a {\n  colr: red;\n  top: 1xp\n}\n\nb:hovr { }\n",
        "a.css:2:3: CSS has no property `colr`; did you mean `color`?; one of your own begins with `--`
         a.css:3:8: CSS has no unit `xp`; did you mean `px`?
         a.css:6:3: CSS has no pseudo-class `:hovr`; did you mean `:hover`?",
    );
}

#[test]
fn what_rust_reads_otherwise_is_css_again() {
    let written = |source: &str| {
        let sample = Sample::new(source);
        let mut faults = Vec::new();
        let text = Text::of_tokens(&sample.tokens, &mut faults);
        assert_eq!(sample.tell(&faults), "", "{source}");
        shortened(&text.text, None)
    };
    assert_eq!(written(".a .b .c { x: 10px 1e3px #1e1 #fff }"), ".a .b .c{x:10px 1e3px #1e1 #fff}");
    assert_eq!(
        written(".a.b:hover { margin: -1px 50% .5rem }"),
        ".a.b:hover{margin:-1px 50% .5rem}"
    );
    // `2em` is no token of Rust's.
    assert_eq!(written("a { margin: 0 2 em 1.5 ex 0 }"), "a{margin:0 2em 1.5ex 0}");
    assert_eq!(written(".column-2 em, h2 em { top: 0 }"), ".column-2 em,h2 em{top:0}");
    // A string that begins a statement is CSS, and any other a string of CSS.
    assert_eq!(written("a { \"top: 2em; color: #12e\"; left: 0 }"), "a{top:2em;color:#12e;left:0}");
    assert_eq!(written(r#"a { content: "\u{b7}\n\"" }"#), "a{content:\"\u{b7}\\a \\\"\"}");
    assert_eq!(written(r#""a { top: 0 }" b { left: 0 }"#), "a{top:0}b{left:0}");
}

#[test]
fn a_mistake_in_a_string_is_told_by_line_if_it_has_several() {
    check(
        "\"a { tpo: 0 }\"",
        "\"a { tpo: 0 }\": CSS has no property `tpo`; did you mean `top`?; one of your own begins with `--`",
    );
    check(
        "\"a {\n tpo: 0 }\"",
        "\"a {\n tpo: 0 }\": in line 2 of this text, column 2: CSS has no property `tpo`; did you mean `top`?; one of your own begins with `--`",
    );
}

#[test]
fn a_sheet_is_written_without_blanks_and_comments() {
    let source = "/* a */ @charset \"UTF-8\";\n.a , .b > p ~ b{ color : red ; ; margin: 0  1px ; }\n@media ( min-width: 1px ) {\n p { top: calc( 1px + 2px ) !important; } }\n@layer a;";
    let expected = ".a,.b>p~b{color:red;margin:0 1px}@media (min-width:1px){p{top:calc(1px + 2px)!important}}@layer a;";
    assert_eq!(shortened(source, None), expected);
}

#[test]
fn names_of_a_sheet_get_an_ending_and_global_ones_none() {
    let source = ".a:is(.b, p):global(.c .a) { animation: turn 1s, other 2s } @keyframes turn { } @scope (.a) { } [class~=\"a\"] .5s { } :global(.d) #a { }";
    let expected = ".a_x:is(.b_x,p):is(.c .a){animation:turn_x 1s,other 2s}@keyframes turn_x{}@scope (.a_x){}[class~=\"a\"] .5s{}:is(.d) #a{}";
    assert_eq!(shortened(source, Some("x")), expected);
}

#[test]
fn classes_are_constants_of_a_module_and_know_their_tokens() {
    let source = "[bine] pub(crate) mod style; .card { & .title-line:hover { top: 0 } }";
    let sample = Sample::new(source);
    let expansion = css(&sample.tokens, &Site { file: "here", read: &site("") });
    assert_eq!(sample.tell(&expansion.faults), "");
    let code = sample.spell(&expansion);
    for part in [
        "pub(crate) mod style {",
        "pub const r#card : bine ::Class =",
        "pub const r#title_line : bine ::Class =",
        "::Class::new(\"title-line_",
        "text:\".card_",
    ] {
        let plain = |text: &str| text.replace(' ', "");
        assert!(plain(&code).contains(&plain(part)), "{part} in {code}");
    }
    assert_eq!(sample.tell(&[Fault::at(expansion.owned[2].0, "")]), "title:");
}

#[test]
fn a_class_that_can_be_no_name_in_rust_is_told() {
    check("mod a; .b-c { } .b_c { }", "b_c: `.b_c` and `.b-c` would both be `b_c` in Rust");
    check(
        "mod a; .self { }",
        "self: `self` can be no name in Rust; a class that is not this sheet's own is written `:global(.self)`",
    );
    check(".self { } .b-c { } .b_c { }", "");
    check(
        ":global(.a) { }",
        "global: every class of this sheet is global: `:global(..)` belongs to a sheet with a `mod` at its head",
    );
}

#[test]
fn sheets_of_equal_classes_have_other_names() {
    let ending_of = |source: &str, file| {
        let sample = Sample::new(source);
        let code = css(&sample.tokens, &Site { file, read: &site("") }).code;
        code.split_once("\"card_").map(|(_, behind)| behind[..6].to_owned())
    };
    let one = ending_of("[bine] mod a; .card { top: 0 }", "one");
    assert!(
        one.as_ref().is_some_and(|ending| ending.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    );
    assert_eq!(one, ending_of("[bine] mod b; .card { top: 0 }", "one"));
    assert_ne!(one, ending_of("[bine] mod a; .card { top: 0 }", "two"));
    assert_ne!(one, ending_of("[bine] mod a; .card { top: 1px }", "one"));
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let sample = Sample::new("[bine] \"a.css\"");
    let read = |_: &crate::token::Token, _: &str| Err("no such file".to_owned());
    let expansion = css_file(&sample.tokens, &Site { file: "here", read: &read });
    assert_eq!(sample.tell(&expansion.faults), "\"a.css\": cannot read `a.css`: no such file");
    let (expansion, sample) = of_file("[bine] a", "");
    assert_eq!(
        sample.tell(&expansion.faults),
        "a: the name of a file is expected: `css_file!(\"style.css\")`"
    );
}

#[test]
fn brackets_in_brackets_have_an_end() {
    for opening in ["a{", "a:is(", "@media (("] {
        let deep = opening.repeat(10_000);
        let (expansion, _) = of_file("[bine] \"a.css\"", &deep);
        let [fault] = &expansion.faults[..] else { panic!("{opening}") };
        assert!(fault.message.ends_with("brackets stand in each other 64 deep at most"));
    }
}

/// Tokens without semicolons, of which a sheet may have more or fewer.
fn tokens(text: &str) -> Vec<String> {
    let pieces = lex(text);
    pieces.iter().filter(|piece| !piece.is(";")).map(|piece| piece.text.to_owned()).collect()
}

/// Text of which much is nearly CSS.
fn any_text() -> impl Strategy<Value = String> {
    const PARTS: &str = "a|.b|{|}|:|;|,|/*x*/|/*| |\n|(|)|[|]|url(|url(x)|\"s\"|\"|'|#fff|#|@media|@keyframes|@|1px|1e|50%|--x|!important|!|\\|\\2c |\u{e4}|>|~|+|&|*|of|:is(|:nth-child(|var(|-|.5|color|red";
    let part = prop::sample::select(PARTS.split('|').collect::<Vec<_>>());
    let parts = prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat());
    prop_oneof![any::<String>(), parts]
}

proptest! {
    #[test]
    fn any_text_is_read_to_its_end(text in any_text()) {
        let pieces = lex(&text);
        let mut at = 0;
        for piece in &pieces {
            prop_assert!(piece.at >= at && !piece.text.is_empty());
            prop_assert_eq!(&text[piece.at..piece.at + piece.text.len()], piece.text);
            at = piece.at + piece.text.len();
        }
        let mut mistakes = Vec::new();
        let items = parse(&pieces, &mut mistakes);
        check::sheet(&items, true, &mut mistakes);
        check::attribute(&items, &mut mistakes);
        let mut faults = Vec::new();
        tell(&Text::of_file("a", text.clone(), 0), mistakes, &mut faults);
        write(&items, &Names::of(&items, Some("x".to_owned())));
    }

    #[test]
    fn what_is_accepted_is_written_with_the_same_tokens(text in any_text()) {
        let pieces = lex(&text);
        let mut mistakes = Vec::new();
        let items: Vec<Item<'_>> = parse(&pieces, &mut mistakes);
        check::sheet(&items, false, &mut mistakes);
        if mistakes.is_empty() {
            let written = write(&items, &Names::default());
            prop_assert_eq!(tokens(&written), tokens(&text));
            prop_assert_eq!(shortened(&written, None), written);
        }
    }

    #[test]
    fn a_right_sheet_keeps_its_tokens_whatever_stands_between_them(
        statements in prop::collection::vec(prop::sample::select(&RIGHT[..]), 1..4),
        blanks in prop::collection::vec(prop::sample::select(vec![" ", "\n", "\t\t", " /* x */ "]), 8),
    ) {
        let text = statements.join(" ");
        let mut spread = String::new();
        for (place, piece) in lex(&text).iter().enumerate() {
            if piece.comment {
                spread.push_str("/**/");
            } else if piece.gap != crate::token::Gap::None {
                spread.push_str(blanks[place % blanks.len()]);
            }
            spread.push_str(piece.text);
        }
        let written = shortened(&spread, None);
        prop_assert_eq!(tokens(&written), tokens(&text));
        prop_assert_eq!(&written, &shortened(&text, None));
        prop_assert!(written.len() <= text.len());
    }
}
