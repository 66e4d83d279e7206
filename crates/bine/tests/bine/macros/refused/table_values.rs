//! Rejected: unnecessary and impossible defaults.

use bine::store::{Id, Table};

#[derive(Table)]
struct User {
    id: Id<User>,
    #[table(default = None)]
    height: Option<u8>,
    #[table(default = Vec::new())]
    picture: Vec<u8>,
    #[table(default = 300)]
    stars: Option<u8>,
    #[table(default = -1)]
    visits: u32,
    #[table(default = "high")]
    score: f64,
}

fn main() {}
