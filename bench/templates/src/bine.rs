//! The pages in `html!`.

use bine::{Page, Writer, html};

use crate::{League, Rows, class};

pub fn table(rows: &Rows, out: &mut Vec<u8>) {
    let page = html! {
        <table>{for row in rows { <tr>{for value in row { <td>{value}</td> }}</tr> }}</table>
    };
    page.write(&mut Writer::new(out));
}

pub fn teams(league: &League, out: &mut Vec<u8>) {
    let page = html! {
        <html>
            <head><title>{league.year}</title></head>
            <body>
                <h1>CSL {league.year}</h1>
                <ul>{for (place, team) in league.teams.iter().enumerate() {
                    <li class={class(place)}><b>{team.name}</b>": "{team.score}</li>
                }}</ul>
            </body>
        </html>
    };
    page.write(&mut Writer::new(out));
}

/// One text, as in a hole of a page.
pub fn text(text: &str, out: &mut Vec<u8>) {
    html!({ text }).write(&mut Writer::new(out));
}
