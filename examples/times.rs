//! Times in the visitor's language and time zone: a list of notes that tells how old each one is.
//!
//! Run `cargo run --example times`, then open <http://127.0.0.1:8080/>.

use std::time::{Duration, SystemTime};

use bine::prelude::*;

#[derive(Table)]
struct Note {
    id: Id<Note>,
    text: Text,
    at: Time,
}

#[page("/")]
async fn notes(store: Store) -> impl Respond {
    html! {
        <h1>Notes</h1>
        <p>Opened on {time!(OPENED, date)}", at "{time!(OPENED)}"."</p>
        <form method="post" action="/">
            <input name="text" aria-label="Note" required>
            <label>Minutes ago <input name="minutes" type="number" min="0" value="0"></label>
            <button>Keep</button>
        </form>
        <Live>
            <ul>{for note in store.read().newest::<Note>(20) {
                <li>{note.text} <small>{time!(note.at, relative)}</small></li>
            }}</ul>
        </Live>
    }
    .with_title("Notes")
}

/// 2026-11-23T14:05:00Z.
const OPENED: Time = Time(1_795_442_700_000_000);

#[page(POST "/")]
async fn keep(store: Store, text: Form<Text>, minutes: Form<f64>) -> Result<Response, Error> {
    let age = Duration::try_from_secs_f64(60.0 * minutes.0).unwrap_or_default();
    let at = SystemTime::now().checked_sub(age).map_or(OPENED, Time::from);
    store.insert(Note { id: Id::unassigned(), text: text.0, at }).await?;
    Ok(Response::see_other("/"))
}

fn main() -> Exit {
    App::new().table::<Note>().page(notes).page(keep).run()
}
