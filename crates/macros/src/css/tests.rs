//! Tests of error messages and of the written form of style sheets.

use bine_markup::css::{Gap, Item, lex, parse};
use proptest::prelude::*;

use super::write::{Names, write};
use super::*;
use crate::expansion::Expansion;
use crate::sample::Sample;

fn site(content: &str) -> impl Fn(&crate::token::Token, &str) -> Result<String, String> {
    let content = content.to_owned();
    move |_, _| Ok(content.clone())
}

/// Checks the faults of `css!`: a line for each, with the token and the message.
#[track_caller]
fn check(source: &str, expected: &str) {
    let sample = Sample::new(&format!("[bine] {source}"));
    let expansion = css(&sample.tokens, &Site { file: "here", read: &site("") });
    assert_eq!(sample.report(&expansion.faults), expected.replace("\n         ", "\n"), "{source}");
}

/// Checks the faults of a file, with line and column.
#[track_caller]
fn check_file(content: &str, expected: &str) {
    let (expansion, _) = of_file("[bine] \"a.css\"", content);
    let messages: Vec<_> = expansion.faults.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(messages.join("\n"), expected.replace("\n         ", "\n"), "{content}");
}

fn of_file(source: &str, content: &str) -> (Expansion, Sample) {
    let sample = Sample::new(source);
    (css_file(&sample.tokens, &Site { file: "here", read: &site(content) }), sample)
}

/// The minified text of a sheet.
fn minified(content: &str, ending: Option<&str>) -> String {
    let pieces = lex(content);
    let items = parse(&pieces, &mut Vec::new());
    write(&items, &Names::of(&items, ending.map(str::to_owned)))
}

/// Valid statements.
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
fn accepts_valid_sheets() {
    for source in RIGHT {
        check_file(source, "");
    }
}

#[test]
fn suggests_the_nearest_css_name() {
    check(
        ".a { colr: red; back-ground: red }",
        "colr: CSS has no property `colr`; did you mean `color`?; a custom property begins with `--`
         back: CSS has no property `back-ground`; did you mean `background`?; a custom property begins with `--`",
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
        "min: `@media` has no feature `min-widht`; did you mean `width`?",
    );
    check(
        "@font-face { font-famly: a }",
        "font: `@font-face` has no `font-famly`; did you mean `font-family`?",
    );
}

#[test]
fn lists_the_values_that_a_property_takes() {
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
        "auto: `padding` has no word `auto`; it takes only the words of every property, such as `inherit`",
    );
    check(
        "a { color: #ff }",
        "#: `#ff` is not a color: it needs 3, 4, 6 or 8 hexadecimal digits after `#`",
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
    check("a { top: 0 = 1px }", "=: `=` is not allowed in a value");
}

#[test]
fn reports_missing_punctuation_in_place() {
    check("a { color: red\n margin: 0 }", "margin: a `;` is missing before `margin`");
    check("a { color: red\n .b { top: 0 } }", ".: a `;` is missing before `.`");
    check("a { color red }", "red: a `:` is missing after `color`");
    check("a { color: ; }", "color: `color` has no value");
    check("a { color }", "color: a declaration is `name: value;`: give a value to `color`");
    check("{ top: 0 }", "{ top: 0 }: a rule begins with a selector: this block has none");
    check("a, { }", "{ }: a selector is missing between commas");
    check("a > { }", ">: `>` needs a selector after it");
    check("@keyframes { }", "@: `@keyframes` needs a name");
    check("@property x { }", "@: `@property` needs a name that begins with `--`");
    check("@media print;", "@: `@media` needs a block, `{ .. }`");
    check_file("a { top: 0", "a.css:1:3: this block has no `}`");
    check_file("a { } }", "a.css:1:7: `}` closes nothing: no block is open here");
    check_file("a { content: \"x\n }", "a.css:1:14: this string has no closing quote on its line");
    check_file("a { top: calc(1px; }", "a.css:1:20: `)` is missing before this");
}

#[test]
fn rejects_misplaced_statements() {
    check("color: red;", "color: a declaration belongs in a rule: `selector { color: .. }`");
    check("@font-face { a { } }", "a: no rule is allowed here, only `name: value;`");
    check(
        "@keyframes x { top: 0; 5px { } }",
        "top: a declaration belongs in a step: `50% { top: .. }`\n5px: a step of an animation is `from`, `to` or a percentage such as `50%`",
    );
    check(
        "@import \"a.css\";",
        "@: `@import` is not allowed, because all sheets are joined: name the other file in a `css_file!`",
    );
    check(
        "a:nth-child(2m) { }",
        "2m: a position is `odd`, `even`, a number, or `An+B` as in `2n + 1`",
    );
    check("a[href=] { }", "href: select an attribute with `[name]` or `[name=\"value\"]`");
    check(". a { }", ".: the name of a class is missing after this");
    check(
        "@media prnt { }",
        "prnt: `@media` has no condition `prnt`; did you mean `print`?; put media features in parentheses",
    );
}

#[test]
fn reports_duplicates_and_older_spellings() {
    check(
        "a { top: 0; top: 1px; top: 0 }",
        "top: this block sets the same value for `top` already",
    );
    check(
        "a { word-wrap: normal }",
        "word: `word-wrap` is an older spelling: write `overflow-wrap`, or both",
    );
}

#[test]
fn reports_mistakes_in_file_order() {
    check_file(
        "a {\n  colr: red;\n  top: 1xp\n}\n\nb:hovr { }\n",
        "a.css:2:3: CSS has no property `colr`; did you mean `color`?; a custom property begins with `--`
         a.css:3:8: CSS has no unit `xp`; did you mean `px`?
         a.css:6:3: CSS has no pseudo-class `:hovr`; did you mean `:hover`?",
    );
}

#[test]
fn restores_css_from_rust_tokens() {
    let written = |source: &str| {
        let sample = Sample::new(source);
        let mut faults = Vec::new();
        let text = Text::of_tokens(&sample.tokens, &mut faults);
        assert_eq!(sample.report(&faults), "", "{source}");
        minified(&text.text, None)
    };
    assert_eq!(written(".a .b .c { x: 10px 1e3px #1e1 #fff }"), ".a .b .c{x:10px 1e3px #1e1 #fff}");
    assert_eq!(
        written(".a.b:hover { margin: -1px 50% .5rem }"),
        ".a.b:hover{margin:-1px 50% .5rem}"
    );
    // `2em` is not a token of Rust.
    assert_eq!(written("a { margin: 0 2 em 1.5 ex 0 }"), "a{margin:0 2em 1.5ex 0}");
    assert_eq!(written(".column-2 em, h2 em { top: 0 }"), ".column-2 em,h2 em{top:0}");
    // A string at the start of a statement contains CSS; any other becomes a CSS string.
    assert_eq!(written("a { \"top: 2em; color: #12e\"; left: 0 }"), "a{top:2em;color:#12e;left:0}");
    assert_eq!(written(r#"a { content: "\u{b7}\n\"" }"#), "a{content:\"\u{b7}\\a \\\"\"}");
    assert_eq!(written(r#""a { top: 0 }" b { left: 0 }"#), "a{top:0}b{left:0}");
}

#[test]
fn reports_lines_in_multiline_strings() {
    check(
        "\"a { tpo: 0 }\"",
        "\"a { tpo: 0 }\": CSS has no property `tpo`; did you mean `top`?; a custom property begins with `--`",
    );
    check(
        "\"a {\n tpo: 0 }\"",
        "\"a {\n tpo: 0 }\": in line 2 of this text, column 2: CSS has no property `tpo`; did you mean `top`?; a custom property begins with `--`",
    );
}

#[test]
fn writes_minified_sheets() {
    let source = "/* a */ @charset \"UTF-8\";\n.a , .b > p ~ b{ color : red ; ; margin: 0  1px ; }\n@media ( min-width: 1px ) {\n p { top: calc( 1px + 2px ) !important; } }\n@layer a;";
    let expected = ".a,.b>p~b{color:red;margin:0 1px}@media (min-width:1px){p{top:calc(1px + 2px)!important}}@layer a;";
    assert_eq!(minified(source, None), expected);
}

#[test]
fn adds_suffixes_to_local_names_only() {
    let source = ".a:is(.b, p):global(.c .a) { animation: turn 1s, other 2s } @keyframes turn { } @scope (.a) { } [class~=\"a\"] .5s { } :global(.d) #a { }";
    let expected = ".a_x:is(.b_x,p):is(.c .a){animation:turn_x 1s,other 2s}@keyframes turn_x{}@scope (.a_x){}[class~=\"a\"] .5s{}:is(.d) #a{}";
    assert_eq!(minified(source, Some("x")), expected);
}

#[test]
fn classes_become_constants_with_spans() {
    let source = "[bine] pub(crate) mod style; .card { & .title-line:hover { top: 0 } }";
    let sample = Sample::new(source);
    let expansion = css(&sample.tokens, &Site { file: "here", read: &site("") });
    assert_eq!(sample.report(&expansion.faults), "");
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
    assert_eq!(sample.report(&[Fault::at(expansion.owned[2].0, "")]), "title:");
}

#[test]
fn rejects_classes_without_a_rust_name() {
    check("mod a; .b-c { } .b_c { }", "b_c: `.b_c` and `.b-c` would both be `b_c` in Rust");
    check(
        "mod a; .self { }",
        "self: `self` is not a valid Rust name; write a class of another sheet as `:global(.self)`",
    );
    check(".self { } .b-c { } .b_c { }", "");
    check(
        ":global(.a) { }",
        "global: every class of this sheet is global: `:global(..)` needs a sheet that starts with `mod`",
    );
}

#[test]
fn suffix_depends_on_file_and_content() {
    let ending_of = |source: &str, file| {
        let sample = Sample::new(source);
        let code = css(&sample.tokens, &Site { file, read: &site("") }).code;
        code.split_once("\"card_").map(|(_, after)| after[..6].to_owned())
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
fn reports_an_unreadable_file() {
    let sample = Sample::new("[bine] \"a.css\"");
    let read = |_: &crate::token::Token, _: &str| Err("no such file".to_owned());
    let expansion = css_file(&sample.tokens, &Site { file: "here", read: &read });
    assert_eq!(sample.report(&expansion.faults), "\"a.css\": cannot read `a.css`: no such file");
    let (expansion, sample) = of_file("[bine] a", "");
    assert_eq!(
        sample.report(&expansion.faults),
        "a: expected the name of a file: `css_file!(\"style.css\")`"
    );
}

#[test]
fn limits_the_nesting_of_brackets() {
    for opening in ["a{", "a:is(", "@media (("] {
        let deep = opening.repeat(10_000);
        let (expansion, _) = of_file("[bine] \"a.css\"", &deep);
        let [fault] = &expansion.faults[..] else { panic!("{opening}") };
        assert!(fault.message.ends_with("brackets are nested more than 64 deep"));
    }
}

/// The tokens without semicolons, which minification may remove.
fn tokens(text: &str) -> Vec<String> {
    let pieces = lex(text);
    pieces.iter().filter(|piece| !piece.is(";")).map(|piece| piece.text.to_owned()).collect()
}

/// Text that resembles CSS.
fn any_text() -> impl Strategy<Value = String> {
    const PARTS: &str = "a|.b|{|}|:|;|,|/*x*/|/*| |\n|(|)|[|]|url(|url(x)|\"s\"|\"|'|#fff|#|@media|@keyframes|@|1px|1e|50%|--x|!important|!|\\|\\2c |\u{e4}|>|~|+|&|*|of|:is(|:nth-child(|var(|-|.5|color|red";
    let part = prop::sample::select(PARTS.split('|').collect::<Vec<_>>());
    let parts = prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat());
    prop_oneof![any::<String>(), parts]
}

proptest! {
    #[test]
    fn lexes_any_text_completely(text in any_text()) {
        let pieces = lex(&text);
        let mut at = 0;
        for piece in &pieces {
            prop_assert!(piece.at >= at && !piece.text.is_empty());
            prop_assert_eq!(&text[piece.at..piece.at + piece.text.len()], piece.text);
            at = piece.at + piece.text.len();
        }
        let mut mistakes = Vec::new();
        let items = parse(&pieces, &mut mistakes);
        bine_markup::css::sheet(&items, true, &mut mistakes);
        bine_markup::css::attribute(&text, 0, &mut Vec::new());
        let mut faults = Vec::new();
        add_faults(&Text::of_file("a", text.clone(), 0), mistakes, &mut faults);
        write(&items, &Names::of(&items, Some("x".to_owned())));
    }

    #[test]
    fn accepted_sheets_keep_their_tokens(text in any_text()) {
        let pieces = lex(&text);
        let mut mistakes = Vec::new();
        let items: Vec<Item<'_>> = parse(&pieces, &mut mistakes);
        bine_markup::css::sheet(&items, false, &mut mistakes);
        if mistakes.is_empty() {
            let written = write(&items, &Names::default());
            prop_assert_eq!(tokens(&written), tokens(&text));
            prop_assert_eq!(minified(&written, None), written);
        }
    }

    #[test]
    fn white_space_does_not_change_the_tokens(
        statements in prop::collection::vec(prop::sample::select(&RIGHT[..]), 1..4),
        blanks in prop::collection::vec(prop::sample::select(vec![" ", "\n", "\t\t", " /* x */ "]), 8),
    ) {
        let text = statements.join(" ");
        let mut spread = String::new();
        for (place, piece) in lex(&text).iter().enumerate() {
            if piece.comment {
                spread.push_str("/**/");
            } else if piece.gap != Gap::None {
                spread.push_str(blanks[place % blanks.len()]);
            }
            spread.push_str(piece.text);
        }
        let written = minified(&spread, None);
        prop_assert_eq!(tokens(&written), tokens(&text));
        prop_assert_eq!(&written, &minified(&text, None));
        prop_assert!(written.len() <= text.len());
    }
}
