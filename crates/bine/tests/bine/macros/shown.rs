//! Decides what right pages show: each beside the HTML it becomes.

use bine::{Page, Writer};

use super::golden;

mod aria;
mod attributes;
mod choices;
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
    // A page ends where its markup does; a file ends with a line.
    html.push(b'\n');
    let path = golden::folder("shown").join(name).with_extension("html");
    let difference = golden::compare(&path, str::from_utf8(&html).unwrap());
    assert_eq!(difference.as_deref().unwrap_or_default(), "");
}

#[test]
fn attributes_are_written_or_left_out_as_their_values_say() {
    check("attributes", attributes::page());
}

#[test]
fn a_choice_shows_the_branch_that_was_taken() {
    check("choices", choices::page());
}

#[test]
fn a_component_is_a_function_that_may_take_pages() {
    check("components", components::page());
}

#[test]
fn an_address_that_would_run_is_replaced_and_raw_is_trusted() {
    check("contexts", contexts::page());
}

#[test]
fn a_document_is_complete_and_readable_as_xml() {
    check("document", document::page());
}

#[test]
fn a_constant_and_a_hole_are_escaped_alike() {
    check("escapes", escapes::page());
}

#[test]
fn a_loop_shows_its_body_for_each_item() {
    check("loops", loops::page());
}

#[test]
fn loops_choices_and_components_stand_in_each_other() {
    check("nested", nested::page());
}

#[test]
fn white_space_is_what_the_source_shows() {
    check("spaces", spaces::page());
}

#[test]
fn values_of_all_kinds_are_shown() {
    check("values", values::page());
}

#[test]
fn roles_and_states_are_attributes_like_others() {
    check("aria", aria::page());
}

#[test]
fn what_opens_and_closes_needs_no_program() {
    check("interactive", interactive::page());
}

#[test]
fn drawings_and_formulas_are_written_in_their_own_ways() {
    check("drawing", drawing::page());
}

#[test]
fn a_form_shows_what_is_chosen_in_it() {
    check("forms", forms::page());
}

#[test]
fn lists_stand_in_lists() {
    check("lists", lists::page());
}

#[test]
fn pictures_and_films_have_their_sources() {
    check("media", media::page());
}

#[test]
fn names_of_the_page_s_own_are_written_as_they_stand() {
    check("own", own::page());
}

#[test]
fn programs_and_styles_are_not_escaped() {
    check("programs", programs::page());
}

#[test]
fn what_is_shown_is_shown_where_it_stands() {
    check("showing", showing::page());
}

#[test]
fn a_table_has_its_parts_in_order() {
    check("tables", tables::page());
}

/// No file of ours holds such letters, so no golden one can.
#[test]
fn letters_beyond_ascii_are_shown_as_they_are() {
    let mut html = Vec::new();
    let page = bine::html!(<p title="\u{e4}">"\u{1f33f}"{"\u{1f33f}\u{e4}"}</p>);
    page.write(&mut Writer::new(&mut html));
    assert_eq!(html, "<p title=\"\u{e4}\">\u{1f33f}\u{1f33f}\u{e4}</p>".as_bytes());
}

/// The macros escape what stands in the source while compiling, the writer what stands in a hole: two tables
/// that must be one.
#[test]
fn both_tables_of_escapes_agree_on_every_ascii_character() {
    let mut holes = Vec::new();
    for character in (0..128_u8).map(char::from) {
        let text = character.to_string();
        bine::html!(<p title={&text}>{&text}</p>).write(&mut Writer::new(&mut holes));
    }
    let mut constants = Vec::new();
    escapes::every_ascii_character().write(&mut Writer::new(&mut constants));
    assert_eq!(String::from_utf8(constants), String::from_utf8(holes));
}
