//! A live message board: run `cargo run --release --example board`, and open it in two windows.

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

#[service]
fn post(call: &mut Call, forum: Text, body: Text) -> Result<Id<Message>, Error> {
    let author = call.session().name();
    Ok(call.insert(Message { id: Id::unassigned(), forum, author, body })?)
}

#[page("/{forum}")]
async fn forum(store: Store, presence: Presence, forum: Path<Text>) -> impl Respond {
    html! {
        <h1>{forum}</h1>
        <Live><p>{presence.people()} here: {presence.names(20).join(", ")}</p></Live>
        <Live><ul aria-live="polite">
            {for message in store.read().find(Message::BY_FORUM, &**forum).rev().take(50) {
                <li id={message.id.to_string()}><b>{message.author}</b> {message.body}</li>
            }}
        </ul></Live>
        <form method="post" action={post}>
            <input type="hidden" name="forum" value={forum}>
            <input name="body" aria-label="Message" required autofocus> <button>Post</button>
        </form>
        <form method="post" action={read}>
            <input type="hidden" name="forum" value={forum}> <button>All forums</button>
        </form>
    }
    .with_title("A forum")
}

#[page("/")]
async fn forums(store: Store, session: Session) -> impl Respond {
    html! {
        <h1>Forums of {session.name()}</h1>
        <Live><ul>
            {for forum in ["Garden", "Kitchen", "Workshop"] {
                <li><a href={forum}>{forum}</a>": "
                    {count(&store, forum).saturating_sub(session.get(forum).unwrap_or(0))} new</li>
            }}
        </ul></Live>
    }
    .with_title("Forums")
}

#[service]
async fn read(caller: Caller, forum: Text) -> Result<Response, Error> {
    caller.session().set(&*forum, count(caller.store(), &forum)).await?;
    Ok(Response::see_other("/"))
}

fn count(store: &Store, forum: &str) -> usize {
    store.read().find(Message::BY_FORUM, forum).count()
}

fn main() -> Exit {
    App::new().table::<Message>().page(forums).page(forum).service(post).service(read).run()
}
