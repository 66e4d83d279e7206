//! Output of valid pages, compared with golden HTML files.

use bine::{Page, Writer};

use super::golden;

mod aria;
mod attributes;
mod bindings;
mod choices;
mod comments;
mod components;
mod contexts;
mod document;
mod drawing;
mod escapes;
mod forms;
mod interactive;
mod lists;
mod loops;
mod media;
mod nested;
mod own;
mod programs;
mod showing;
mod spaces;
mod tables;
mod values;

#[track_caller]
fn check(name: &str, page: impl Page) {
    let mut html = Vec::new();
    page.write(&mut Writer::new(&mut html));
    // A page does not end with a line break, but a file does.
    html.push(b'\n');
    let path = golden::folder("shown").join(name).with_extension("html");
    let difference = golden::compare(&path, str::from_utf8(&html).unwrap());
    assert_eq!(difference.as_deref().unwrap_or_default(), "");
}

#[test]
fn writes_or_omits_attributes_by_value() {
    check("attributes", attributes::page());
}

#[test]
fn binds_variables_in_markup() {
    check("bindings", bindings::page());
    check("bindings", bindings::tree());
}

#[test]
fn bindings_do_not_hide_the_variables_of_the_macro() {
    let mut html = Vec::new();
    let page = bine::html! {
        {let writer = 1; let builder = 2;}
        <Live>{let sum = writer + builder;}<p>{writer}{builder}{sum}</p></Live>
    };
    page.write(&mut Writer::new(&mut html));
    assert_eq!(html, b"<p>123</p>");
    let tree = bine::tree!({let writer = 1; let builder = 2;}<p>{writer}{builder}</p>);
    assert_eq!(tree.to_string(), "<p>12</p>");
}

#[test]
fn omits_comments() {
    check("comments", comments::page());
    check("comments", comments::tree());
}

#[test]
fn renders_the_branch_taken() {
    check("choices", choices::page());
}

#[test]
fn renders_components_with_page_arguments() {
    check("components", components::page());
}

#[test]
fn replaces_executable_addresses_and_trusts_raw() {
    check("contexts", contexts::page());
}

#[test]
fn renders_complete_document_readable_as_xml() {
    check("document", document::page());
}

#[test]
fn escapes_constants_and_values_alike() {
    check("escapes", escapes::page());
}

#[test]
fn renders_loop_body_for_each_item() {
    check("loops", loops::page());
}

#[test]
fn nests_loops_choices_and_components() {
    check("nested", nested::page());
}

#[test]
fn preserves_white_space_of_the_source() {
    check("spaces", spaces::page());
}

#[test]
fn renders_values_of_all_types() {
    check("values", values::page());
}

#[test]
fn renders_aria_roles_and_states_as_attributes() {
    check("aria", aria::page());
}

#[test]
fn renders_disclosure_elements_without_script() {
    check("interactive", interactive::page());
}

#[test]
fn renders_svg_and_mathml_by_their_own_rules() {
    check("drawing", drawing::page());
}

#[test]
fn renders_selected_state_of_forms() {
    check("forms", forms::page());
}

#[test]
fn nests_lists() {
    check("lists", lists::page());
}

#[test]
fn renders_media_with_sources() {
    check("media", media::page());
}

#[test]
fn keeps_custom_names_unchanged() {
    check("own", own::page());
}

#[test]
fn does_not_escape_scripts_and_styles() {
    check("programs", programs::page());
}

#[test]
fn renders_show_at_its_position() {
    check("showing", showing::page());
}

#[test]
fn renders_table_parts_in_order() {
    check("tables", tables::page());
}

/// Our source files are ASCII, so no golden file can contain such letters.
#[test]
fn keeps_letters_beyond_ascii() {
    let mut html = Vec::new();
    let page = bine::html!(<p title="\u{e4}">"\u{1f33f}"{"\u{1f33f}\u{e4}"}</p>);
    page.write(&mut Writer::new(&mut html));
    assert_eq!(html, "<p title=\"\u{e4}\">\u{1f33f}\u{1f33f}\u{e4}</p>".as_bytes());
}

/// The macros escape constants at compile time and the writer escapes values at run time. Both
/// tables must agree.
#[test]
fn escape_tables_agree_on_ascii() {
    let mut holes = Vec::new();
    for character in (0..128_u8).map(char::from) {
        let text = character.to_string();
        bine::html!(<p title={&text}>{&text}</p>).write(&mut Writer::new(&mut holes));
    }
    let mut constants = Vec::new();
    escapes::every_ascii_character().write(&mut Writer::new(&mut constants));
    assert_eq!(String::from_utf8(constants), String::from_utf8(holes));
}
