//! The program of `hop-io`: a page of any length. The files are those of `--root`.

use bine::prelude::*;

#[page("/rows")]
async fn rows(count: Query<u32>) -> impl Respond {
    let count = *count;
    html! {
        <ul>
            {for row in 0..count { <li>"Row "{row}" of "{count}</li> }}
        </ul>
    }
}

fn main() -> Exit {
    App::new().page(rows).run()
}
