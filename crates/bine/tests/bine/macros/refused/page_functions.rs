//! Rejected: functions that cannot be pages.

use bine::{Page, Query, Text, html, page};

struct Site;

impl Site {
    #[page("/method")]
    async fn method(&self) -> impl Page {
        html!()
    }
}

#[page("/generic")]
async fn generic<T>(value: Query<T>) -> impl Page {
    html!()
}

#[page("/impl")]
async fn generic_argument(value: impl Send) -> impl Page {
    html!()
}

#[page("/struct")]
struct NoFunction;

#[page("/pattern")]
async fn pattern((a, b): (Query<Text>, Query<Text>)) -> impl Page {
    html!()
}

fn main() {}
