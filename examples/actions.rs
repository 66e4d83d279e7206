//! A list in which each tab has its own selection: each button has its action next to it in the
//! page.
//!
//! Run `cargo run --release --example actions`, and open it in two tabs.

use bine::prelude::*;

const SHELVES: [&str; 2] = ["Kitchen", "Cellar"];

#[derive(Table)]
struct Thing {
    id: Id<Thing>,
    #[table(index)]
    shelf: Text,
    #[table(length = 1..=80)]
    name: Text,
}

#[page("/")]
async fn shelf(store: Store, frame: Frame) -> impl Page {
    let shelf: Text = frame.get("shelf").unwrap_or(SHELVES[0].into());
    html! {
        <Live>
            <h1>{&shelf}</h1>
            {button_list(SHELVES, |name| name, |name| action!([name: Text = (*name).into()] |call| {
                call.frame()?.set_in(call, "shelf", name)
            }))}
            <ul aria-live="polite">
                {for thing in store.read().find(Thing::BY_SHELF, &*shelf) {
                    <li id={thing.id.to_string()}>
                        <form method="post" action={action!([id: Id<Thing> = thing.id] |call| call.remove(id))}>
                            {thing.name} <button>Take</button>
                        </form>
                    </li>
                }}
            </ul>
            <form id="put" method="post" action={action!([shelf: Text] |call, name: Text| {
                call.insert(Thing { id: Id::unassigned(), shelf, name })
            })}>
                <input name="name" aria-label="Thing" maxlength="80" required autofocus> <button>Put</button>
            </form>
        </Live>
    }
}

fn app() -> App {
    App::new().table::<Thing>().page(shelf)
}

fn main() -> Exit {
    app().run()
}

#[cfg(test)]
mod tests {
    use bine::test::Site;

    #[test]
    fn shows_an_action_in_all_tabs() {
        let site = Site::new(super::app());
        let (mut ann, mut bo) = (site.visit("/"), site.visit("/"));
        ann.submit("#put", [("name", "Flour")]);
        bo.expect("li", "Flour");
        bo.click("[aria-live] button");
        ann.expect_none("li", "Flour");
    }
}
