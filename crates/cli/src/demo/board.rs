//! The demo's message board: two forums, with the newest message last.

use bine::channels::{Retention, Settings};
use bine::prelude::*;
use bine::store::{self, Transaction};

use super::format_time;

/// The limit of a forum; a further message replaces the oldest.
const MAX_MESSAGES: usize = 100;

/// The forums.
const FORUMS: [Forum; 2] = [
    Forum { key: "garden", title: "The garden", about: "What climbs, and how high." },
    Forum { key: "kitchen", title: "The kitchen", about: "What becomes of it." },
];

struct Forum {
    key: &'static str,
    title: &'static str,
    about: &'static str,
}

/// A message of a forum.
#[derive(Table)]
pub(crate) struct Message {
    id: Id<Message>,
    #[table(index)]
    forum: Text,
    #[table(length = 1..=40)]
    author: Text,
    #[table(length = 1..=2000)]
    body: Text,
    written: Time,
}

impl Show<Parts> for Message {
    fn show(&self) -> impl Html<Parts> {
        html! {
            <li>
                <header><strong>{self.author}</strong><time>{format_time(self.written.unix())}</time></header>
                <p>{self.body}</p>
            </li>
        }
    }
}

/// Returns the forum with this key.
fn forum_by_key(key: &str) -> Result<&'static Forum, Error> {
    let forum = FORUMS.iter().find(|forum| forum.key == key);
    forum.ok_or_else(|| Error::not_found("there is no such forum"))
}

/// Lists the forums.
#[page("/board")]
pub(crate) async fn board(store: Store) -> impl Respond {
    let now = store.read();
    let forums = FORUMS.map(|Forum { key, title, about }| {
        (key, title, about, now.find(Message::BY_FORUM, key).count())
    });
    html! {
        <h1>"The board"</h1>
        <p class="lead">
            "Two forums. Started with "<code>"--data DIR"</code>", this server still has them tomorrow. It all works
            without script."
        </p>
        <ul class="cards">
            {for (key, title, about, count) in forums {
                <li>
                    <a class="card" href={format!("/board/{key}")}>
                        <h2>{title}</h2>
                        <p>{about}" "{count_text(count)}</p>
                    </a>
                </li>
            }}
        </ul>
        <h2>"Try it"</h2>
        <p>"Each message is also published in a channel, which anybody may follow from any message on:"</p>
        <pre><code>{TRY}</code></pre>
    }
    .with_title("The board")
}

const TRY: &str = "\
curl --no-buffer --header 'Accept: text/event-stream' 'http://127.0.0.1:8080/channels?c=board'
curl --include 'http://127.0.0.1:8080/channels?c=board&after=earliest'
";

/// Shows a forum: its messages, and a form for a new one.
#[page("/board/{forum}")]
pub(crate) async fn forum(
    forum: Path<Text>,
    said: Query<Option<Text>>,
    store: Store,
) -> Result<impl Respond, Error> {
    let Forum { title, about, key } = *forum_by_key(&forum)?;
    let messages: Vec<Message> = store.read().find(Message::BY_FORUM, key).collect();
    let complaint = said.0.and_then(|said| complaint(&said));
    Ok(html! {
        <p><a href="/board">"The board"</a></p>
        <h1>{title}</h1>
        <p class="lead">{about}</p>
        {match complaint { Some(complaint) => { <p class="said" role="alert">{complaint}</p> } None => {} }}
        {if messages.is_empty() {
            <p class="empty">"Nobody has written here yet. Be the first."</p>
        } else {
            <ol class="messages">
                {for message in &messages { {message} }}
            </ol>
        }}
        <h2 id="write">"Write something"</h2>
        <form method="post" action={format!("/board/{key}")}>
            <label>"Your name" <input name="author" autocomplete="name" maxlength="40" required></label>
            <label>"Your message" <textarea name="body" maxlength="2000" required></textarea></label>
            <button type="submit">"Post"</button>
        </form>
    }
    .with_title(title))
}

/// Stores a message and redirects its author to the forum.
#[page(POST "/board/{forum}")]
pub(crate) async fn post(
    forum: Path<Text>,
    author: Form<Text>,
    body: Form<Text>,
    store: Store,
    channels: Channels,
) -> Result<Response, Error> {
    let Forum { key, .. } = *forum_by_key(&forum)?;
    let (author, body) = (author.trim(), body.trim());
    let written = store.change(|change| add(change, key, author, body)).await;
    let said = match written {
        Ok(()) => {
            // The message is stored already; publishing only notifies followers of the channel.
            let _ = channels.publish("board", &*format!("{author} in {key}: {body}")).await;
            ""
        }
        Err(store::Error::InvalidValues(_)) if author.is_empty() || body.is_empty() => {
            "?said=empty"
        }
        Err(store::Error::InvalidValues(_)) => "?said=long",
        Err(error) => return Err(error.into()),
    };
    Ok(Response::see_other(format!("/board/{key}{said}#write")))
}

/// The settings of the channel `board`.
pub(crate) fn channel_settings() -> Settings {
    let retention = Retention { messages: MAX_MESSAGES as u64, ..Retention::default() };
    Settings { retention, ..Settings::default() }
}

fn add(
    change: &mut Transaction,
    forum: &str,
    author: &str,
    body: &str,
) -> Result<(), store::Error> {
    if change.find(Message::BY_FORUM, forum).count() >= MAX_MESSAGES
        && let Some(oldest) = change.one(Message::BY_FORUM, forum)
    {
        change.remove(oldest.id)?;
    }
    let (forum, author, body) = (forum.into(), author.into(), body.into());
    change.insert(Message { id: Id::unassigned(), forum, author, body, written: Time::now() })?;
    Ok(())
}

fn complaint(said: &str) -> Option<&'static str> {
    match said {
        "empty" => Some("A message needs a name and a few words."),
        "long" => Some("That was too long: a name has at most 40 letters, a message 2000."),
        _ => None,
    }
}

fn count_text(messages: usize) -> String {
    match messages {
        0 => "No message yet.".to_owned(),
        1 => "One message.".to_owned(),
        many => format!("{many} messages."),
    }
}

#[cfg(test)]
mod tests {
    use bine::store::Options;

    use super::*;

    #[test]
    fn keeps_newest_messages_of_forum() {
        let store = Store::in_memory(Options::new().table::<Message>()).unwrap();
        for number in 0..=MAX_MESSAGES {
            let text = number.to_string();
            store.change(|change| add(change, "garden", "a", &text)).wait().unwrap();
        }
        let messages: Vec<_> = store.read().find(Message::BY_FORUM, "garden").collect();
        assert_eq!(messages.len(), MAX_MESSAGES);
        assert_eq!((messages[0].body.as_str(), messages[99].body.as_str()), ("1", "100"));
    }
}
