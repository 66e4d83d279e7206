//! Tests of the parser's errors. The tests of `emit` cover valid markup.

use super::*;
use crate::sample::Sample;

/// Checks the faults in `source`: `expected` has a line for each, with the token and the message.
#[track_caller]
fn check(source: &str, expected: &str) {
    let sample = Sample::new(source);
    let mut faults = Vec::new();
    parse(&sample.tokens, &mut faults);
    let expected: Vec<&str> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(sample.report(&faults), expected.join("\n"));
}

#[test]
fn reports_crossed_tags_once() {
    check("<b><i>text</b></i>", "b: `</b>` closes `<b>` while `<i>` from line 1 is still open");
}

#[test]
fn reports_a_misspelled_closing_tag_once() {
    check("<main>\n<em>text</en></main>", "en: `</en>` cannot close `<em>` from line 2");
}

#[test]
fn reports_only_the_stray_closing_tag() {
    check("<p>text</b></p>", "b: `</b>` cannot close `<p>` from line 1");
    check("text</b>", "b: `</b>` closes nothing: no element is open here");
}

#[test]
fn reports_an_unclosed_tag_at_its_start() {
    check("<p><b>text", "b: `<b>` is never closed\np: `<p>` is never closed");
}

#[test]
fn rejects_tags_that_cross_braces() {
    check("<p>{if open { <b> }}</p>", "b: `<b>` is never closed");
    check("<p>{if open { </p> }}</p>", "p: `</p>` closes nothing: no element is open here");
}

#[test]
fn rejects_closing_tags_of_void_elements() {
    check("<br>text</br>", "br: `<br>` is void: it has neither children nor a closing tag");
}

#[test]
fn rejects_empty_holes() {
    check(
        "<p class={}>{}</p>",
        "{}: an empty hole: put an expression between the braces
         {}: an empty hole: put an expression between the braces (a comment needs none)",
    );
}

#[test]
fn rejects_duplicate_attributes() {
    check("<p class=\"a\" id=\"b\" Class={c}></p>", "Class: `Class` is set twice");
}

#[test]
fn rejects_values_other_than_strings_and_holes() {
    check(
        "<p width=5 height=></p>",
        "5: the value of `width` is a string, \"..\", or a hole, {..}
         >: the value of `height` is a string, \"..\", or a hole, {..}",
    );
    check("<p a=b\"x\"></p>", "b\"x\": a plain string is expected: drop the `b`");
}

#[test]
fn rejects_quoted_names_that_end_the_tag() {
    let message = "an attribute's name has no space, quote, `<`, `>`, `/`, `=` or `&`";
    check(
        r#"<p "a b"="" "a>"="" "@click"=""></p>"#,
        &format!("\"a b\": {message}\n\"a>\": {message}"),
    );
}

#[test]
fn reports_a_malformed_tag_once() {
    check(
        "<p {rest}>text</p>",
        "{rest}: in the tag `<p`, an attribute, `>` or `/>` is expected here",
    );
    check("<p class=\"a\"", "p: the tag `<p` has no `>`");
    check("<p></p", "p: `</p` has no `>`");
}

#[test]
fn rejects_await_and_question_mark_in_holes() {
    check(
        "<p title={load()?}>{name(id.await)}</p>{if find().await { x }}{for x in list? { x }}",
        "?: a page cannot return an error: assign the value before html!: `let x = ...?;`
         await: a page cannot await: assign the value before html!: `let x = ...await;`
         await: a page cannot await: assign the value before html!: `let x = ...await;`
         ?: a page cannot return an error: assign the value before html!: `let x = ...?;`",
    );
}

#[test]
fn allows_await_and_question_mark_in_closures() {
    check("{all(|x| { x? })}{spawn(async { x.await })}{outer(html! { <p>Really?</p> })}", "");
    check("<p>Really? We await.</p>", "");
}

#[test]
fn reports_the_syntax_of_control_flow() {
    check("{for x { y }}", "for: a loop is written `{for pattern in iterator { markup }}`");
    check("{if x}", "if: a conditional is written `{if condition { markup } else { markup }}`");
    check(
        "{if x { y } else z}",
        "else: a conditional is written `{if condition { markup } else { markup }}`",
    );
    check("{match x}", "match: a match is written `{match value { pattern => { markup } .. }}`");
    check(
        "{match x { 1 => \"one\", _ => {} }}",
        "\"one\": put the markup of an arm in braces: `pattern => { markup }`",
    );
    check(
        "{while x { y }}",
        "while: `while` is not supported in a page: use `for`, `if` or `match`",
    );
}

#[test]
fn accepts_bindings() {
    check(
        "{let a = 1;}{let (b, C { d }): (u8, C) = e; let f = if a { 1 } else { 2 };}
         <script>{let g = h;}{raw(g)}</script>",
        "",
    );
}

#[test]
fn reports_the_syntax_of_bindings() {
    let form = "a variable is declared by `{let pattern = value;}`";
    check("{let x;}", &format!("let: {form}"));
    check("{let = 1;}", &format!("let: {form}"));
    check("{let x = ;}", &format!(";: {form}"));
    let semicolon = "a `let` ends with a semicolon: `{let pattern = value;}`";
    check("{let x = 1}", &format!("1: {semicolon}"));
    check("{let}", &format!("let: {semicolon}"));
    check(
        "{let x = 1; x}",
        "x: only `let` statements are allowed after a `let`: end the braces, and open others",
    );
}

#[test]
fn rejects_bindings_that_leave_the_page() {
    check(
        "{let Some(x) = y else { return };}",
        "else: a `let` in a page has no `else`: use `{if let pattern = value { markup } else { markup }}`",
    );
    let why = "would leave the page with open elements: use `if` or `match` with markup";
    check(
        "{let x = match y { Some(x) => x, None => return };}
         {for y in z { {let x = if y { 1 } else { continue };}{let x = if y { 1 } else { break };} }}",
        &format!("return: `return` {why}\ncontinue: `continue` {why}\nbreak: `break` {why}"),
    );
    check(
        "{let x = y?;}{let x = y.await;}",
        "?: a page cannot return an error: assign the value before html!: `let x = ...?;`
         await: a page cannot await: assign the value before html!: `let x = ...await;`",
    );
}

#[test]
fn allows_jumps_within_the_value_of_a_binding() {
    check(
        "{let x = loop { if y { break 1 } };}{let x = { for y in z { continue; } 1 };}
         {let x = list.iter().map(|y| { return y }).sum();}{let x = async { return 1 };}
         {let x = 'a: { break 'a 1 };}",
        "",
    );
}

#[test]
fn skips_comments_of_html() {
    check("<!-- a <b> {c} --><p><!----><!-- (d) --></p>", "");
    check("a <!-- <b> -- > ->", &format!("<: {UNCLOSED}"));
    check("<p><!-- a </p>", &format!("<: {UNCLOSED}\np: `<p>` is never closed"));
    check("<!-- https://a -->\n", &format!("<: {UNCLOSED}"));
    check(
        "<script><!-- a --></script>",
        "<: no comment of HTML is allowed here: write comments as in Rust, `//` and `/* */`",
    );
}

const UNCLOSED: &str = "this comment has no `-->`, or a `//` hides it: \
                        write the comment as in Rust, `//` or `/* */`";

#[test]
fn asks_to_quote_an_apostrophe_once_per_text() {
    let why = "an apostrophe starts a Rust lifetime here: put the text in quotes";
    check(
        "<p>Well, (we) don't and can't!</p>",
        &format!("': {why}: \"Well, (we) don't and can't!\""),
    );
    check("<p>don't {x} can't</p>", &format!("': {why}: \"don't\"\n': {why}: \"can't\""));
    check(
        "It's one two three four five six seven eight nine ten eleven twelve thirteen",
        &format!("': {why}: \"It's one two three four five six seven eight nine ten eleven ..\""),
    );
    check("<p>f'x'</p>", &format!("'x': {why}: \"f'x'\""));
    check("<b>x</b>'s {name}'s rock 'n' roll 'n the 1990's", "");
}

#[test]
fn asks_to_quote_reserved_prefixes() {
    check(
        "C# x",
        "#: `#` directly after a word is reserved in Rust: put the text in quotes: \"C# x\"",
    );
    check(
        "Hello\", \"{name}",
        "\", \": a string cannot follow a word directly: put both in one string: \"Hello, \"",
    );
    check(
        "\"Hello, \"name",
        "\"Hello, \"name: put a space between the string and `name`, or put both in one string",
    );
}

#[test]
fn rejects_angles_that_open_no_tag() {
    check("a < b", "<: `<` opens a tag; as text it is written \"<\"");
    check("<>a", ">: several roots need no fragment: write them one after another");
    check("<!a>", "<: only `<!DOCTYPE html>` and comments, `<!-- .. -->`, start with `<!`");
    check("<p></p><!DOCTYPE html>", "<: `<!DOCTYPE html>` must come first");
}

#[test]
fn rejects_elements_in_scripts() {
    check(
        "<script>a <b></script>",
        "b: no element is allowed here: write the text as a string, \"..\"",
    );
    check(
        "<script>\"x = '</script>'\"</script>",
        "\"x = '</script>'\": this text would end or hide its element",
    );
}

#[test]
fn reports_every_mistake() {
    check(
        "<p id=\"a\" id=\"b\">{}<b>x</p></br>",
        "id: `id` is set twice
         {}: an empty hole: put an expression between the braces (a comment needs none)
         p: `</p>` closes `<p>` while `<b>` from line 1 is still open
         br: `<br>` is void: it has neither children nor a closing tag",
    );
}

/// Editors expand the macro at every keystroke.
#[test]
fn parses_truncated_markup_without_panic() {
    let source = "<!DOCTYPE html><a-b x=\"1\" y={z.await} disabled \"@q\"={r}>text, (more [text]) <br/> \"s\" \
                  {x?}{for x in y { <i>{x}</i> }}{if a { b } else if c { d } else { e }} \
                  {let (a, b): C<d> = e; let f = g;}<!-- h {i} --> can't {match x { 1 | 2 if y => { <b></b> }, _ => {} }}</a-b><script>{raw(x)}</script>";
    tear(&Sample::new(source).tokens, &mut |tokens| {
        parse(tokens, &mut Vec::new());
    });
}

/// Calls `visit` with every prefix of the tokens and with each single token removed, inside groups
/// too.
fn tear(tokens: &[Token], visit: &mut dyn FnMut(&[Token])) {
    for index in 0..tokens.len() {
        let (before, rest) = tokens.split_at(index);
        visit(before);
        visit(&[before, &rest[1..]].concat());
        if let Kind::Group(group) = &rest[0].kind {
            tear(&group.tokens, &mut |inner| {
                let mut torn = tokens.to_vec();
                if let Kind::Group(group) = &mut torn[index].kind {
                    group.tokens = inner.to_vec();
                }
                visit(&torn);
            });
        }
    }
}
