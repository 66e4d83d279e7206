//! The pages in askama.

use askama::Template;

use crate::{League, Rows};

#[derive(Template)]
#[template(
    ext = "html",
    source = "<table>{% for row in rows.iter() %}<tr>{% for value in row %}<td>{{ value }}</td>{% endfor %}</tr>{% endfor %}</table>"
)]
struct Table<'a> {
    rows: &'a Rows,
}

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<html><head><title>{{ league.year }}</title></head><body><h1>CSL {{ league.year }}</h1><ul>{% for team in league.teams %}<li class="{% if loop.first %}champion{% endif %}"><b>{{ team.name }}</b>: {{ team.score }}</li>{% endfor %}</ul></body></html>"#
)]
struct Teams<'a> {
    league: &'a League,
}

pub fn table(rows: &Rows) -> String {
    Table { rows }.render().expect("the template cannot fail")
}

pub fn teams(league: &League) -> String {
    Teams { league }.render().expect("the template cannot fail")
}

pub fn table_to(rows: &Rows, out: &mut String) {
    Table { rows }.render_into(out).expect("the template cannot fail");
}

pub fn teams_to(league: &League, out: &mut String) {
    Teams { league }.render_into(out).expect("the template cannot fail");
}
