//! The pages in sailfish: `render_once` reserves the size of the last page, `render_once_to`
//! appends.

use sailfish::TemplateOnce;
use sailfish::runtime::Buffer;

use crate::{League, Rows, class};

#[derive(TemplateOnce)]
#[template(
    source = "<table><% for row in self.rows { %><tr><% for value in row { %><td><%= value %></td><% } %></tr><% } %></table>"
)]
struct Table<'a> {
    rows: &'a Rows,
}

#[derive(TemplateOnce)]
#[template(
    source = r#"<html><head><title><%= self.league.year %></title></head><body><h1>CSL <%= self.league.year %></h1><ul><% for (place, team) in self.league.teams.iter().enumerate() { %><li class="<%= class(place) %>"><b><%= team.name %></b>: <%= team.score %></li><% } %></ul></body></html>"#
)]
struct Teams<'a> {
    league: &'a League,
}

pub fn table(rows: &Rows) -> String {
    Table { rows }.render_once().expect("the template cannot fail")
}

pub fn teams(league: &League) -> String {
    Teams { league }.render_once().expect("the template cannot fail")
}

pub fn table_to(rows: &Rows, out: &mut Buffer) {
    Table { rows }.render_once_to(out).expect("the template cannot fail");
}

pub fn teams_to(league: &League, out: &mut Buffer) {
    Teams { league }.render_once_to(out).expect("the template cannot fail");
}

/// One text, escaped.
pub fn text(text: &str, out: &mut Buffer) {
    sailfish::runtime::Render::render_escaped(text, out).expect("the template cannot fail");
}
