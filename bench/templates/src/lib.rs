//! The pages of the public template benchmark, in the syntax of each engine.
//!
//! There is one file per engine, each with `table` and `teams`, which append to the engine's kind
//! of buffer, or return a string where the engine cannot append.

#![forbid(unsafe_code)]

pub mod askama;
pub mod bine;
pub mod hypertext;
pub mod markup;
pub mod maud;
pub mod sailfish;
pub mod write;

/// The content of the big table.
pub type Rows = [Vec<usize>];

/// A hundred rows with the numbers from 0 to 99.
pub fn rows() -> Vec<Vec<usize>> {
    vec![(0..100).collect(); 100]
}

/// A league in one year.
pub struct League {
    pub year: u16,
    pub teams: Vec<Team>,
}

/// A team of a league.
pub struct Team {
    pub name: String,
    pub score: u8,
}

/// The league of the public benchmark.
pub fn league() -> League {
    let team = |(name, score): (&str, u8)| Team { name: name.to_owned(), score };
    let teams = [("Jiangsu", 43), ("Beijing", 27), ("Guangzhou", 22), ("Shandong", 12)];
    League { year: 2015, teams: teams.map(team).into() }
}

/// The class of the team at this place, which is empty except for the first.
pub fn class(place: usize) -> &'static str {
    if place == 0 { "champion" } else { "" }
}

/// Removes differences without a meaning: the end of a void element.
fn normal(page: &str) -> String {
    page.replace(" />", ">")
}

/// Panics unless every engine writes the same two pages.
pub fn compare() {
    let (rows, league) = (rows(), league());
    let mut out = Vec::new();
    bine::table(&rows, &mut out);
    let table = String::from_utf8(std::mem::take(&mut out)).expect("pages are text");
    bine::teams(&league, &mut out);
    let teams = String::from_utf8(out).expect("pages are text");
    let (mut write_table, mut write_teams) = (String::new(), String::new());
    write::table(&rows, &mut write_table);
    write::teams(&league, &mut write_teams);
    let others = [
        ("askama", askama::table(&rows), askama::teams(&league)),
        ("hypertext", hypertext::table(&rows), hypertext::teams(&league)),
        ("markup", markup::table(&rows), markup::teams(&league)),
        ("maud", maud::table(&rows), maud::teams(&league)),
        ("sailfish", sailfish::table(&rows), sailfish::teams(&league)),
        ("write!", write_table, write_teams),
    ];
    for (engine, other_table, other_teams) in others {
        assert_eq!(normal(&other_table), normal(&table), "{engine}");
        assert_eq!(normal(&other_teams), normal(&teams), "{engine}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn writes_the_same_pages_with_every_engine() {
        super::compare();
    }
}
