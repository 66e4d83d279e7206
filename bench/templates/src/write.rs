//! The pages with `write!`, which escapes no text: the cost of Rust's own formatting.

use std::fmt::Write as _;

use crate::{League, Rows, Team, class};

pub fn table(rows: &Rows, out: &mut String) {
    out.push_str("<table>");
    for row in rows {
        out.push_str("<tr>");
        for value in row {
            write!(out, "<td>{value}</td>").expect("writing to a string cannot fail");
        }
        out.push_str("</tr>");
    }
    out.push_str("</table>");
}

pub fn teams(league: &League, out: &mut String) {
    let year = league.year;
    write!(out, "<html><head><title>{year}</title></head><body><h1>CSL {year}</h1><ul>")
        .expect("writing to a string cannot fail");
    for (place, Team { name, score }) in league.teams.iter().enumerate() {
        let class = class(place);
        write!(out, "<li class=\"{class}\"><b>{name}</b>: {score}</li>")
            .expect("writing to a string cannot fail");
    }
    out.push_str("</ul></body></html>");
}
