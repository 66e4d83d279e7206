//! Durable notes: a form, and the notes written with it, stored in the folder `data` of the current
//! directory.
//!
//! Run `cargo run --release --example notes`, then open <http://127.0.0.1:8080/>. Kill the program
//! at any time: every note that was displayed survives.

use bine::prelude::*;

#[derive(Table)]
struct Note {
    id: Id<Note>,
    #[table(length = 1..=200)]
    text: Text,
    written: Time,
}

#[page("/")]
async fn notes(store: Store) -> impl Page {
    let newest = store.read().newest::<Note>(20);
    html! {
        <h1>Notes</h1>
        <form method="post" action="/">
            <input name="text" aria-label="A note" maxlength="200" required autofocus>
            <button>Keep</button>
        </form>
        <ul>{for note in newest { <li>{note.text}</li> }}</ul>
    }
}

#[page(POST "/")]
async fn keep(store: Store, text: Form<Text>) -> Result<Response, Error> {
    store.insert(Note { id: Id::unassigned(), text: text.0, written: Time::now() }).await?;
    Ok(Response::see_other("/"))
}

fn app() -> App {
    App::new().table::<Note>().page(notes).page(keep)
}

fn main() -> Exit {
    app().run()
}

#[cfg(test)]
mod tests {
    use bine::test::Site;

    #[test]
    fn stores_notes_and_lists_the_newest_first() {
        let site = Site::new(super::app());
        let mut tab = site.visit("/");
        tab.submit("form", [("text", "buy hops")]);
        tab.submit("form", [("text", "boil <them>")]);
        assert_eq!(site.visit("/").texts("li"), ["boil <them>", "buy hops"]);
    }
}
