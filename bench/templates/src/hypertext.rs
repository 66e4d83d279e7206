//! The pages in hypertext, in its maud grammar.

use hypertext::Buffer;
use hypertext::prelude::*;

use crate::{League, Rows, class};

fn table_page(rows: &Rows) -> impl Renderable {
    maud! {
        table { @for row in rows { tr { @for value in row { td { (value) } } } } }
    }
}

fn teams_page(league: &League) -> impl Renderable {
    maud! {
        html {
            head { title { (league.year) } }
            body {
                h1 { "CSL " (league.year) }
                ul {
                    @for (place, team) in league.teams.iter().enumerate() {
                        li class=(class(place)) { b { (team.name) } ": " (team.score) }
                    }
                }
            }
        }
    }
}

pub fn table(rows: &Rows) -> String {
    table_page(rows).render().into_inner()
}

pub fn teams(league: &League) -> String {
    teams_page(league).render().into_inner()
}

pub fn table_to(rows: &Rows, out: &mut String) {
    table_page(rows).render_to(Buffer::dangerously_from_string_mut(out));
}

pub fn teams_to(league: &League, out: &mut String) {
    teams_page(league).render_to(Buffer::dangerously_from_string_mut(out));
}
