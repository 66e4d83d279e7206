//! A message board that everybody sees change: posts are rows, and whoever looks at a forum sees them as they come.
//!
//! `cargo run --release --example board`, then open <http://127.0.0.1:8080/> in two windows.

use bine::prelude::*;

#[derive(Table)]
struct Message {
    id: Id<Message>,
    #[table(index)]
    forum: Text,
    author: Text,
    #[table(length = 1..=500)]
    body: Text,
}

#[page("/{forum}")]
async fn forum(store: Store, forum: Path<Text>) -> impl Page {
    html! {
        <h1>{forum}</h1>
        <Live>
            <ul aria-live="polite">
                {for message in store.read().find(Message::BY_FORUM, &**forum).rev().take(50) {
                    <li id={message.id.to_string()}>{message.body} <small>by {message.author}</small></li>
                }}
            </ul>
        </Live>
        <form method="post">
            <input name="body" aria-label="Message" required maxlength="500" autofocus>
            <button>Post</button>
        </form>
    }
}

#[page(POST "/{forum}")]
async fn post(
    store: Store,
    session: Session,
    forum: Path<Text>,
    body: Form<Text>,
) -> Result<Response, Error> {
    store
        .insert(Message {
            id: Id::new(),
            forum: forum.0.clone(),
            author: session.name(),
            body: body.0,
        })
        .await?;
    Ok(Response::see_other(format!("/{}", *forum)))
}

fn main() -> Exit {
    App::new().table::<Message>().page(forum).page(post).run()
}
