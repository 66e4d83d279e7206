//! Decides what the parser must say about markup that is wrong; `emit` tests what it makes of the rest.

use super::*;
use crate::sample::Sample;

/// `expected` has a line for each fault: the token, and what is said about it.
#[track_caller]
fn check(source: &str, expected: &str) {
    let sample = Sample::new(source);
    let mut faults = Vec::new();
    parse(&sample.tokens, &mut faults);
    let expected: Vec<&str> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(sample.tell(&faults), expected.join("\n"));
}

#[test]
fn crossed_tags_are_one_fault() {
    check("<b><i>text</b></i>", "b: `</b>` closes `<b>` while `<i>` from line 1 is still open");
}

#[test]
fn a_misspelled_closing_tag_is_one_fault() {
    check("<main>\n<em>text</en></main>", "en: `</en>` cannot close `<em>` from line 2");
}

#[test]
fn a_stray_closing_tag_leaves_the_rest_alone() {
    check("<p>text</b></p>", "b: `</b>` cannot close `<p>` from line 1");
    check("text</b>", "b: `</b>` closes nothing: no element is open here");
}

#[test]
fn an_unclosed_tag_is_blamed_where_it_opens() {
    check("<p><b>text", "b: `<b>` is never closed\np: `<p>` is never closed");
}

#[test]
fn braces_are_scopes_of_their_own() {
    check("<p>{if open { <b> }}</p>", "b: `<b>` is never closed");
    check("<p>{if open { </p> }}</p>", "p: `</p>` closes nothing: no element is open here");
}

#[test]
fn a_void_element_has_no_children() {
    check("<br>text</br>", "br: `<br>` is void: it has neither children nor a closing tag");
}

#[test]
fn an_empty_hole_is_refused() {
    check(
        "<p class={}>{}</p>",
        "{}: an empty hole: put an expression between the braces
         {}: an empty hole: put an expression between the braces (a comment needs none)",
    );
}

#[test]
fn an_attribute_is_given_once() {
    check("<p class=\"a\" id=\"b\" Class={c}></p>", "Class: `Class` is given twice");
}

#[test]
fn an_attribute_has_a_string_or_a_hole() {
    check(
        "<p width=5 height=></p>",
        "5: the value of `width` is a string, \"..\", or a hole, {..}
         >: the value of `height` is a string, \"..\", or a hole, {..}",
    );
    check("<p a=b\"x\"></p>", "b\"x\": a plain string is expected: drop the `b`");
}

#[test]
fn a_quoted_name_cannot_end_its_tag() {
    let message = "an attribute's name has no space, quote, `<`, `>`, `/`, `=` or `&`";
    check(
        r#"<p "a b"="" "a>"="" "@click"=""></p>"#,
        &format!("\"a b\": {message}\n\"a>\": {message}"),
    );
}

#[test]
fn a_tag_that_goes_wrong_is_one_fault() {
    check(
        "<p {rest}>text</p>",
        "{rest}: in the tag `<p`, an attribute, `>` or `/>` is expected here",
    );
    check("<p class=\"a\"", "p: the tag `<p` has no `>`");
    check("<p></p", "p: `</p` has no `>`");
}

#[test]
fn waiting_and_failing_are_refused_on_the_token() {
    check(
        "<p title={load()?}>{name(id.await)}</p>{if find().await { x }}{for x in list? { x }}",
        "?: a page cannot fail: bind it to a name before html!: `let x = ...?;`
         await: a page cannot wait: bind it to a name before html!: `let x = ...await;`
         await: a page cannot wait: bind it to a name before html!: `let x = ...await;`
         ?: a page cannot fail: bind it to a name before html!: `let x = ...?;`",
    );
}

#[test]
fn blocks_of_their_own_may_fail_and_wait() {
    check("{all(|x| { x? })}{spawn(async { x.await })}{outer(html! { <p>Really?</p> })}", "");
    check("<p>Really? We await.</p>", "");
}

#[test]
fn control_flow_shows_its_form() {
    check("{for x { y }}", "for: a loop is written `{for pattern in iterator { markup }}`");
    check("{if x}", "if: a choice is written `{if condition { markup } else { markup }}`");
    check(
        "{if x { y } else z}",
        "else: a choice is written `{if condition { markup } else { markup }}`",
    );
    check("{match x}", "match: a match is written `{match value { pattern => { markup } .. }}`");
    check(
        "{match x { 1 => \"one\", _ => {} }}",
        "\"one\": the markup of an arm stands in braces: `pattern => { markup }`",
    );
    check(
        "{while x { y }}",
        "while: `while` cannot stand in a page: only `for`, `if` and `match` can",
    );
}

#[test]
fn an_angle_that_opens_no_tag_is_explained() {
    check("a < b", "<: `<` opens a tag; as text it is written \"<\"");
    check("<>a", ">: several roots need no fragment: write them in a row");
    check(
        "<!-- a -->",
        "<: only `<!DOCTYPE html>` is written so; comments are Rust's, `//` and `/* */`",
    );
    check("<p></p><!DOCTYPE html>", "<: `<!DOCTYPE html>` comes before everything else");
}

#[test]
fn a_script_holds_text_alone() {
    check(
        "<script>a <b></script>",
        "b: no element may stand here: write the text as a string, \"..\"",
    );
    check(
        "<script>\"x = '</script>'\"</script>",
        "\"x = '</script>'\": this text would end or hide the element it stands in",
    );
}

#[test]
fn several_mistakes_are_told_at_once() {
    check(
        "<p id=\"a\" id=\"b\">{}<b>x</p></br>",
        "id: `id` is given twice
         {}: an empty hole: put an expression between the braces (a comment needs none)
         p: `</p>` closes `<p>` while `<b>` from line 1 is still open
         br: `<br>` is void: it has neither children nor a closing tag",
    );
}

/// The editor calls the macro at every keystroke.
#[test]
fn a_page_cut_off_or_torn_anywhere_is_read_without_panic() {
    let source = "<!DOCTYPE html><a-b x=\"1\" y={z.await} disabled \"@q\"={r}>text, (more [text]) <br/> \"s\" \
                  {x?}{for x in y { <i>{x}</i> }}{if a { b } else if c { d } else { e }} \
                  {match x { 1 | 2 if y => { <b></b> }, _ => {} }}</a-b><script>{raw(x)}</script>";
    tear(&Sample::new(source).tokens, &mut |tokens| {
        parse(tokens, &mut Vec::new());
    });
}

/// Shows `visit` the tokens cut off at and without each one, inside groups too.
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
