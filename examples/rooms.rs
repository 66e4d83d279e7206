//! Rooms with passwords: a page decides about access, the channel holds the reply, and a thread of
//! the program counts the messages.
//!
//! Run `cargo run --release --example rooms`, then open <http://127.0.0.1:8080/rooms/hop?word=cone>
//! in two windows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bine::channels::{Interruption, Retention, Settings};
use bine::prelude::*;

/// The rooms and their passwords.
const ROOMS: [(&str, &str); 2] = [("hop", "cone"), ("yam", "tuber")];

static SAID: AtomicU64 = AtomicU64::new(0);

fn open(room: &str, word: &str) -> Result<(), Error> {
    match ROOMS.iter().find(|(name, _)| *name == room) {
        Some((_, own)) if *own == word => Ok(()),
        Some(_) => Err(Error::forbidden("another word opens this room")),
        None => Err(Error::not_found("there is no such room")),
    }
}

#[page("/rooms/{room}")]
async fn room(room: Path<Text>, word: Query<Text>) -> Result<impl Page, Error> {
    open(&room, &word)?;
    Ok(html! {
        <h1>{room}</h1>
        <form method="post"><input name="text" aria-label="Say something" autofocus /> <button>Say it</button></form>
        <ol id="said"></ol>
        <script src="/room.js" defer></script>
    })
}

const SCRIPT: &str = r#"
new EventSource(location.pathname + "/said" + location.search).onmessage = ({ data }) => {
  const item = document.createElement("li");
  item.textContent = data;
  said.append(item);
};
"#;

#[page("/rooms/{room}/said")]
async fn said(channels: Channels, room: Path<Text>, word: Query<Text>) -> Result<Response, Error> {
    open(&room, &word)?;
    Ok(channels.respond([&**room]).earliest().into())
}

#[page(POST "/rooms/{room}")]
async fn say(
    channels: Channels,
    room: Path<Text>,
    word: Query<Text>,
    text: Form<Text>,
) -> Result<Response, Error> {
    open(&room, &word)?;
    channels.publish(&room, &**text).await?;
    Ok(Response::see_other(format!("/rooms/{}?word={}", *room, *word)))
}

#[page("/")]
async fn start() -> impl Page {
    let said = SAID.load(Ordering::Relaxed);
    html!(<p>Messages so far: {said}</p>)
}

fn count(channels: &Channels) -> Result<(), Error> {
    let mut follower = channels.follow(ROOMS.map(|(name, _)| name)).earliest();
    thread::Builder::new().name("count".to_owned()).spawn(move || {
        loop {
            match follower.wait(Duration::from_hours(1)) {
                Some(Ok(_)) => SAID.fetch_add(1, Ordering::Relaxed),
                Some(Err(Interruption::TimedOut | Interruption::Gap { .. })) => continue,
                Some(Err(Interruption::Refused(_))) | None => return,
            };
        }
    })?;
    Ok(())
}

fn main() -> Exit {
    let retention = Retention { messages: 1000, ..Retention::default() };
    let settings = || Settings { retention, ..Settings::default() };
    App::new()
        .in_memory()
        .channel("hop", settings())
        .channel("yam", settings())
        .on_channels_open(count)
        .page(start)
        .page(room)
        .page(said)
        .page(say)
        .asset("/room.js", "text/javascript", SCRIPT.as_bytes())
        .run()
}
