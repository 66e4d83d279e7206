//! Tests of the code that markup expands to.

use super::*;
use crate::sample::Sample;

/// Checks the body of the page's closure.
#[track_caller]
fn check(source: &str, expected: &str) {
    let sample = Sample::new(&format!("[bine]{source}"));
    let expansion = html(&sample.tokens);
    assert_eq!(sample.report(&expansion.faults), "");
    let spelled = sample.spell(&expansion);
    let body = spelled.split_once("FillValue as _};").and_then(|(_, body)| body.strip_suffix("})"));
    assert_eq!(body, Some(expected));
}

/// Checks the markup of a page without holes.
#[track_caller]
fn check_constant(source: &str, expected: &str) {
    check(source, &format!("writer.constant({expected:?});"));
}

#[test]
fn uses_the_crate_path_of_the_bracket() {
    let sample = Sample::new("[a::b] x");
    let spelled = sample.spell(&html(&sample.tokens));
    assert!(spelled.contains(
        "a::b ::__private::html::page::<a::b ::__private::html::Phrasing, _>(\
         move |writer: &mut a::b ::__private::html::Writer<'_>|"
    ));
}

/// Checks the method that fills the only hole of the markup.
#[track_caller]
fn check_hole(source: &str, expected: &str) {
    let sample = Sample::new(&format!("[bine]{source}"));
    let expansion = html(&sample.tokens);
    assert_eq!(sample.report(&expansion.faults), "");
    assert!(
        sample.spell(&expansion).contains(&format!("( x ).fill_{expected}(writer)")),
        "{source}"
    );
}

#[test]
fn selects_the_fill_method_by_parent() {
    check_hole("<div>{x}</div>", "flow");
    check_hole("<li><a href=\"/\">{x}</a></li>", "flow");
    check_hole("<p><a href=\"/\">{x}</a></p>", "phrasing");
    check_hole("<h1>{if y { {x} }}</h1>", "phrasing");
    check_hole("<title>{x}</title>", "text");
    check_hole("<ul>{x}</ul>", "parts");
    check_hole("<html><head>{x}</head></html>", "parts");
    check_hole("<html><head><title>t</title><noscript>{x}</noscript></head></html>", "parts");
    check_hole("<dl>{x}</dl>", "pieces");
    check_hole("<dl><div>{x}</div></dl>", "parts");
    check_hole("<section><div>{x}</div></section>", "flow");
    check_hole("<select><div>{x}</div></select>", "anything");
    check_hole("<picture>{x}</picture>", "pieces");
    check_hole("<figure>{x}</figure>", "anything");
    check_hole("<my-map>{x}</my-map>", "anything");
    check_hole("<svg><g>{x}</g></svg>", "anything");
    check_hole("<template>{x}</template>", "anything");
}

#[test]
fn selects_the_fill_method_by_root_siblings() {
    check_hole("{x}", "flow");
    check_hole("<p>a</p>{x}", "flow");
    check_hole("<b>a</b>{x}", "phrasing");
    check_hole("<a href=\"/\">{x}</a>", "phrasing");
    check_hole("<li>a</li>{x}", "parts");
    check_hole("<!DOCTYPE html>{x}", "anything");
}

#[test]
fn merges_constants_across_elements() {
    check(
        "<!DOCTYPE html><html><body><h1>\"Hello, \"{name}</h1><p>Bye</p></body></html>",
        "writer.either(\"<!DOCTYPE html><html><body><h1>Hello, \", \
         \"<!DOCTYPE html><html xmlns=\\\"http://www.w3.org/1999/xhtml\\\"><body><h1>Hello, \");( name ).fill_phrasing(writer);\
         writer.constant(\"</h1><p>Bye</p></body></html>\");",
    );
}

#[test]
fn expands_an_empty_page_to_no_code() {
    check("", "");
}

#[test]
fn collapses_white_space_between_words() {
    check_constant(
        "<p>one   two\n   three, (four five); 6</p>",
        "<p>one two three, (four five); 6</p>",
    );
    check_constant("<p>( a\n )[b ]</p>", "<p>( a )[b ]</p>");
}

#[test]
fn keeps_edge_white_space_on_the_same_line_only() {
    check_constant(
        "<p>\n  one <b>two</b> three\n  <i>four</i>\n</p>",
        "<p>one <b>two</b> three<i>four</i></p>",
    );
    check_constant("<p> one </p>", "<p> one </p>");
    check_constant("  <b>a</b> <b>b</b>\n<b>c</b>  ", "<b>a</b> <b>b</b><b>c</b>");
    check_constant("<p>\n\"one \"\n\"two\" three\n</p>", "<p>one two three</p>");
    check(
        "<p>\n{a} {b}\n</p>",
        "writer.constant(\"<p>\");( a ).fill_phrasing(writer);writer.constant(\" \");( b ).fill_phrasing(writer);\
         writer.constant(\"</p>\");",
    );
}

#[test]
fn escapes_constants_at_compile_time() {
    check_constant(
        r#"<p title="\"<&'">"1 < 2 & \"3\"" & 4 > 3</p>"#,
        "<p title=\"&quot;&lt;&amp;&#39;\">1 &lt; 2 &amp; &quot;3&quot; &amp; 4 &gt; 3</p>",
    );
}

/// Checks the markup of a page without holes in HTML and in XML syntax.
#[track_caller]
fn check_both(source: &str, html: &str, xml: &str) {
    check(source, &format!("writer.either({html:?}, {xml:?});"));
}

#[test]
fn writes_names_as_html_spells_them() {
    check_constant(
        r#"<my-element-2 data-x="1" aria-label="a" xml:lang="b" for="c" type="d" r#async/>"#,
        "<my-element-2 data-x=\"1\" aria-label=\"a\" xml:lang=\"b\" for=\"c\" type=\"d\" async=\"\"></my-element-2>",
    );
    check_both(
        r#"<p "@click"="e" hx-on:click="f">a</p><x:y/>"#,
        "<p @click=\"e\" hx-on:click=\"f\">a</p><x:y></x:y>",
        "<p>a</p><x_y></x_y>",
    );
    check(
        r#"<p "@click"={f}>a</p>"#,
        "writer.constant(\"<p\");if !writer.is_in_xml() {writer.attribute(\" @click=\\\"\", (&( f )));}\
         writer.constant(\">a</p>\");",
    );
}

#[test]
fn declares_namespaces_in_xml() {
    check_both(
        r#"<svg><a xlink:href="/"></a><foreignObject><p><b>a</b></p></foreignObject></svg>"#,
        "<svg><a xlink:href=\"/\"></a><foreignObject><p><b>a</b></p></foreignObject></svg>",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"><a xmlns:xlink=\"http://www.w3.org/1999/xlink\" xlink:href=\"/\"></a>\
         <foreignObject><p xmlns=\"http://www.w3.org/1999/xhtml\"><b>a</b></p></foreignObject></svg>",
    );
    check_both(
        "<p><math><mi>x</mi></math></p>",
        "<p><math><mi>x</mi></math></p>",
        "<p><math xmlns=\"http://www.w3.org/1998/Math/MathML\"><mi>x</mi></math></p>",
    );
}

#[test]
fn preserves_white_space_of_values_in_xml() {
    check_both(
        "<p title=\"a\\tb\\nc\">\"d\\n\"</p>",
        "<p title=\"a\tb\nc\">d\n</p>",
        "<p title=\"a&#9;b&#10;c\">d\n</p>",
    );
}

#[test]
fn closes_void_elements_and_bare_attributes_for_xml() {
    check_constant("<br><br/><input disabled>", "<br /><br /><input disabled=\"\" />");
    check_constant("<div/>", "<div></div>");
}

#[test]
fn attribute_hole_writes_the_whole_attribute() {
    check(
        "<p title={name} class=\"x\">y</p>",
        "writer.constant(\"<p\");writer.attribute(\" title=\\\"\", (&( name )));writer.constant(\" class=\\\"x\\\">y</p>\");",
    );
}

#[test]
fn selects_the_attribute_method_by_name() {
    check(
        "<a href={url} onclick={run}><img src={look} alt=\"\"></a>",
        "writer.constant(\"<a\");writer.link(\" href=\\\"\", (&( url )));writer.code(\" onclick=\\\"\", (&( run )));\
         writer.constant(\"><img\");writer.image(\" src=\\\"\", (&( look )));writer.constant(\" alt=\\\"\\\" /></a>\");",
    );
}

#[test]
fn escapes_scripts_only_in_xml() {
    check(
        "<script>\"if (a < b && c) {\" {raw(x)} \"}\"</script>",
        "writer.either(\"<script>if (a < b && c) { \", \"<script>if (a &lt; b &amp;&amp; c) { \");\
         writer.fill_raw((&( raw(x) )));writer.constant(\" }</script>\");",
    );
}

#[test]
fn expands_loops() {
    check(
        "<ul>{for (i, x) in list.iter() { <li>{x}</li> }}</ul>",
        "writer.constant(\"<ul>\");for (i, x) in list.iter() {writer.constant(\"<li>\");( x ).fill_flow(writer);\
         writer.constant(\"</li>\");}writer.constant(\"</ul>\");",
    );
}

#[test]
fn expands_conditionals() {
    check(
        "{if let Some(x) = y && x { a } else if match z { _ => true } { b } else { c }}",
        "if let Some(x) = y && x {writer.constant(\"a\");}else if match z { _ => true } {writer.constant(\"b\");}\
         else {writer.constant(\"c\");}",
    );
}

#[test]
fn expands_matches() {
    check(
        "{match x { Some(1 | 2) => { few }, Some(n) if n > 2 => { <b>{n}</b> } None => {} }}",
        "match x { Some(1 | 2) =>{writer.constant(\"few\");} Some(n) if n > 2 =>{writer.constant(\"<b>\");\
         ( n ).fill_phrasing(writer);writer.constant(\"</b>\");} None =>{}}",
    );
}

#[test]
fn scope_of_a_binding_ends_with_its_element() {
    check(
        "<p>a {let x = y;}<b>{x}</b></p>{let x = z;}<i class={x}>c</i>",
        "writer.constant(\"<p>\");{writer.constant(\"a\"); let x = y; writer.constant(\" <b>\");\
         ( x ).fill_phrasing(writer);writer.constant(\"</b>\");}writer.constant(\"</p>\"); let x = z; \
         writer.constant(\"<i\");writer.attribute(\" class=\\\"\", (&( x )));writer.constant(\">c</i>\");",
    );
    check(
        "{for a in b { {let (c, d): E = a; let f = d;}{c}{f} }}",
        "for a in b { let (c, d): E = a; let f = d; ( c ).fill_flow(writer);( f ).fill_flow(writer);}",
    );
}

#[test]
fn white_space_around_bindings_and_comments_counts_once() {
    for skipped in ["{let x = y;}", "<!-- x -->"] {
        let constant = |source: &str| {
            let sample = Sample::new(&format!("[bine]{}", source.replace("..", skipped)));
            let spelled = sample.spell(&html(&sample.tokens));
            let parts = spelled.split("constant(\"").skip(1);
            parts.filter_map(|part| part.split('"').next()).collect::<String>()
        };
        assert_eq!(
            constant("<p> .. a ..b .. c.. <b>d</b> ..\n<i>e</i>..<u>f</u> .. </p>"),
            "<p> a b c <b>d</b><i>e</i><u>f</u> </p>"
        );
        assert_eq!(constant("..\n<p>a..b\n..\nc</p> .."), "<p>ab c</p>");
    }
}

#[test]
fn replaces_a_faulty_page_by_an_empty_page() {
    let sample = Sample::new("[bine]<p>");
    assert_eq!(
        sample.spell(&html(&sample.tokens)),
        "{ bine ::__private::html::page::< bine ::__private::html::ScriptSupporting, _>(|_| {}) }"
    );
}

#[test]
fn adds_the_line_feed_that_a_browser_drops() {
    check(
        "<textarea>{a}</textarea><pre>x</pre>",
        "writer.either(\"<textarea>\\n\", \"<textarea>\");( a ).fill_text(writer);\
         writer.constant(\"</textarea><pre>x</pre>\");",
    );
}

#[test]
fn expands_regions_with_borrowed_values() {
    check(
        "<h1>{x}</h1><Live><p>{y}</p></Live>",
        "writer.constant(\"<h1>\");( x ).fill_phrasing(writer);writer.constant(\"</h1>\");\
         { bine ::__private::submit! { bine ::__private::LinkedFeature::Region }\
         writer.region(|writer| {writer.constant(\"<p>\");( y ).fill_phrasing(writer);writer.constant(\"</p>\");}\
         , |region| bine ::__private::seen(region)); }",
    );
}

/// Checks whether markup with this value of `action` registers it as a possible service.
#[track_caller]
fn check_reference(value: &str, is_one: bool) {
    for [name, attribute] in [["form", "action"], ["button", "formaction"]] {
        let sample = Sample::new(&format!("[bine]<{name} {attribute}={{{value}}}></{name}>"));
        let spelled = sample.spell(&page(&[], &parse(&sample.tokens[1..], &mut Vec::new())));
        assert_eq!(spelled.contains("ServiceReference"), is_one, "{spelled}");
    }
}

#[test]
fn registers_paths_in_lower_case_as_possible_services() {
    for path in ["add", "_add2", "services::add", "::shop::add", "self::add", "super::a::add"] {
        check_reference(path, true);
    }
    let others = [
        "\"/add\"",
        "add()",
        "ADD",
        "Add",
        "T::ADD",
        "Self::add",
        "&add",
        "add.path()",
        "r#type",
        "self",
        "true",
        "false",
        "add::<u8>",
        "urls::ADD",
        "1",
    ];
    for other in others {
        check_reference(other, false);
    }
}

#[test]
fn looks_up_a_single_name_in_the_module_only() {
    let sample = Sample::new("[bine]\n<form\naction={add}></form>");
    let spelled = sample.spell(&html(&sample.tokens));
    let expected = "{#[allow(dead_code, unused_imports)] mod __reference { fn add() {} \
         pub(super)fn __find() -> ::core::option::Option<&'static bine ::__private::Signature> {\
         use super::*;#[allow(unused_imports)] use bine ::__private::NoService as _;\
         bine ::__private::ServiceProbe(&add).signature() }} use __reference::__find;\
         bine ::__private::submit! { bine ::__private::ServiceReference {\
         place: || ::core::any::type_name_of_val(&__find), file: ::core::file!(),\
         line: 3, find: __find, text:\"add\"} } }";
    assert!(spelled.contains(expected), "{spelled}");
}
