//! The pages in maud, which returns a new string for each.

use maud::html;

use crate::{League, Rows, class};

pub fn table(rows: &Rows) -> String {
    html! {
        table { @for row in rows { tr { @for value in row { td { (value) } } } } }
    }
    .into_string()
}

pub fn teams(league: &League) -> String {
    html! {
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
    .into_string()
}
