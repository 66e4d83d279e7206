//! The pages in markup.

use crate::{League, Rows, class};

markup::define! {
    Table<'a>(rows: &'a Rows) {
        table { @for row in rows.iter() { tr { @for value in row.iter() { td { @value } } } } }
    }
    Teams<'a>(league: &'a League) {
        html {
            head { title { @league.year } }
            body {
                h1 { "CSL " @league.year }
                ul {
                    @for (place, team) in league.teams.iter().enumerate() {
                        li[class = class(place)] { b { @team.name } ": " @team.score }
                    }
                }
            }
        }
    }
}

pub fn table(rows: &Rows) -> String {
    Table { rows }.to_string()
}

pub fn teams(league: &League) -> String {
    Teams { league }.to_string()
}

pub fn table_to(rows: &Rows, out: &mut String) {
    markup::Render::render(&Table { rows }, out).expect("writing to a string cannot fail");
}

pub fn teams_to(league: &League, out: &mut String) {
    markup::Render::render(&Teams { league }, out).expect("writing to a string cannot fail");
}
