//! A live message board. The front page of the demo shows this file
//! beside two windows that run it.

use bine::prelude::*;

#[derive(Table)]
pub(crate) struct Message {
    id: Id<Message>,
    #[table(index)]
    forum: Text,
    author: Text,
    #[table(length = 1..=500)]
    body: Text,
    written: Time,
}

#[page("/board/{forum}")]
pub(crate) async fn board(
    forum: Path<Text>,
    store: Store,
    presence: Presence,
) -> Result<impl Respond, Error> {
    check(&forum)?;
    let page = html! {
        <header class="bar">
            <h1>"The "{forum}</h1>
            <Live><p class="here" title={presence.names(20).join(", ")}>
                {count(presence.people(), "person", "people")}", "
                {count(presence.tabs(), "tab", "tabs")}
            </p></Live>
        </header>
        <form class="composer" method="post" action={post}>
            <input type="hidden" name="forum" value={forum}>
            <input name="body" aria-label="Message" maxlength="500"
                placeholder="Write something" autocomplete="off" required>
            <button type="submit">"Post"</button>
        </form>
        <Live><ol class="messages" aria-live="polite">
            {for message in store.read().find(Message::BY_FORUM, &**forum).rev() {
                <li id={message.id.to_string()}>
                    <b>{message.author}</b>
                    <time>{super::format_time(message.written.unix())}</time>
                    <p>{message.body}</p>
                </li>
            }}
        </ol></Live>
        <p class="empty">"Nothing here yet. Write the first message."</p>
    };
    // A window has no menu of the site: see the layout.
    Ok(page.with_title("The board").with_meta("layout", "window"))
}

#[service("/board/post")]
pub(crate) fn post(call: &mut Call, forum: Text, body: Text) -> Result<(), Error> {
    check(&forum)?;
    if call.find(Message::BY_FORUM, &*forum).count() >= MAX_MESSAGES
        && let Some(oldest) = call.one(Message::BY_FORUM, &*forum)
    {
        call.remove(oldest.id)?;
    }
    let author = call.session().name();
    // Programs may follow the board too, by a channel.
    let (channels, news) = (call.channels()?, format!("{author} in {forum}: {body}"));
    call.after_commit(move || drop(channels.publish("board", &*news)));
    call.insert(Message { id: Id::unassigned(), forum, author, body, written: Time::now() })?;
    Ok(())
}

pub(crate) const FORUMS: [&str; 2] = ["garden", "kitchen"];
/// A further message replaces the oldest one of its forum.
pub(crate) const MAX_MESSAGES: usize = 100;

fn check(forum: &str) -> Result<(), Error> {
    let is_known = FORUMS.contains(&forum);
    is_known.then_some(()).ok_or_else(|| Error::not_found("there is no such forum"))
}

fn count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
