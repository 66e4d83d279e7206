//! The program of the tests: notes on a live page, a counter in the session, and a channel.

use bine::channels::{Access, Settings};
use bine::prelude::*;

#[derive(Table)]
pub(crate) struct Note {
    pub(crate) id: Id<Note>,
    #[table(unique)]
    pub(crate) name: Text,
    pub(crate) count: u32,
}

/// Adds one to the count of a note, which begins at one.
#[service]
fn count(call: &mut Call, name: Text) -> Result<u32, Error> {
    let found = call.one(Note::BY_NAME, &*name);
    Ok(match found {
        Some(note) => {
            call.update(note.id, |note: &mut Note| note.count += 1)?;
            note.count + 1
        }
        None => {
            call.insert(Note { id: Id::unassigned(), name, count: 1 })?;
            1
        }
    })
}

#[page("/")]
async fn notes(store: Store) -> impl Page {
    html! {
        <h1>Notes</h1>
        <Live><ul>
            {for note in store.read().all::<Note>() {
                <li id={note.id.to_string()}>{note.name}": "{note.count}</li>
            }}
        </ul></Live>
    }
}

/// The number of visits in this session.
#[page("/visits")]
async fn visits(session: Session) -> Result<Json<u32>, Error> {
    let visits = session.get::<u32>("visits").unwrap_or_default() + 1;
    session.set("visits", visits).await?;
    Ok(Json(visits))
}

/// The same, for a form.
#[page(POST "/visits")]
async fn visit(session: Session) -> Result<Json<u32>, Error> {
    let visits = session.get::<u32>("visits").unwrap_or_default() + 1;
    session.set("visits", visits).await?;
    Ok(Json(visits))
}

pub(crate) fn app() -> App {
    App::new()
        .table::<Note>()
        .page(notes)
        .page(visits)
        .page(visit)
        .service(count)
        .channels(Access::allow_all())
        .channel(
            "news",
            Settings { content_type: Some("application/json".into()), ..Settings::default() },
        )
}
