//! Decides what the demo's message board keeps and shows: two forums, in memory, newest last.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bine::prelude::*;

use super::moment;

/// What a forum keeps; the oldest goes when one more comes.
const MOST_MESSAGES: usize = 100;
/// Letters of a name and of a message.
const MOST_NAME: usize = 40;
const MOST_BODY: usize = 2000;

/// All forums of the board.
pub(crate) struct Board {
    forums: [Forum; 2],
}

struct Forum {
    /// Its place in an address.
    key: &'static str,
    title: &'static str,
    about: &'static str,
    messages: Mutex<VecDeque<Message>>,
}

#[derive(Clone)]
struct Message {
    author: Text,
    body: Text,
    /// Seconds since 1970.
    written: u64,
}

impl Show<Parts> for Message {
    fn show(&self) -> impl Html<Parts> {
        html! {
            <li>
                <header><strong>{self.author}</strong><time>{moment(self.written)}</time></header>
                <p>{self.body}</p>
            </li>
        }
    }
}

impl Board {
    /// Two forums with nothing in them.
    pub(crate) fn new() -> Self {
        let forum = |key, title, about| Forum { key, title, about, messages: Mutex::default() };
        Self {
            forums: [
                forum("garden", "The garden", "What climbs, and how high."),
                forum("kitchen", "The kitchen", "What becomes of it."),
            ],
        }
    }

    fn forum(&self, key: &str) -> Result<&Forum, Error> {
        let forum = self.forums.iter().find(|forum| forum.key == key);
        forum.ok_or_else(|| Error::not_found("there is no such forum"))
    }
}

impl Forum {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Message>> {
        // A panic cannot leave a message half in.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, message: Message) {
        let mut messages = self.lock();
        if messages.len() == MOST_MESSAGES {
            messages.pop_front();
        }
        messages.push_back(message);
    }
}

/// The forums.
#[page("/board")]
pub(crate) async fn board(board: State<Board>) -> impl Respond {
    let forums: Vec<_> = board
        .forums
        .iter()
        .map(|forum| (forum.key, forum.title, forum.about, forum.lock().len()))
        .collect();
    html! {
        <h1>"The board"</h1>
        <p class="lead">"Two forums, kept in memory until this server ends. It all works without script."</p>
        <ul class="cards">
            {for (key, title, about, count) in forums {
                <li>
                    <a class="card" href={format!("/board/{key}")}>
                        <h2>{title}</h2>
                        <p>{about}" "{counted(count)}</p>
                    </a>
                </li>
            }}
        </ul>
    }
    .with_title("The board")
}

/// One forum: its messages, and a form for the next.
#[page("/board/{forum}")]
pub(crate) async fn forum(
    forum: Path<Text>,
    said: Query<Option<Text>>,
    board: State<Board>,
) -> Result<impl Respond, Error> {
    let Forum { title, about, key, .. } = *board.forum(&forum)?;
    let messages: Vec<Message> = board.forum(&forum)?.lock().iter().cloned().collect();
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

/// Takes a message and sends its author back to the forum.
#[page(POST "/board/{forum}")]
pub(crate) async fn post(
    forum: Path<Text>,
    author: Form<Text>,
    body: Form<Text>,
    board: State<Board>,
) -> Result<Response, Error> {
    let forum = board.forum(&forum)?;
    let (author, body) = (author.trim(), body.trim());
    let said = match () {
        () if author.is_empty() || body.is_empty() => "empty",
        () if author.chars().count() > MOST_NAME || body.chars().count() > MOST_BODY => "long",
        () => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            forum.add(Message { author: author.into(), body: body.into(), written: now.as_secs() });
            return Ok(Response::see_other(format!("/board/{}#write", forum.key)));
        }
    };
    Ok(Response::see_other(format!("/board/{}?said={said}#write", forum.key)))
}

fn complaint(said: &str) -> Option<&'static str> {
    match said {
        "empty" => Some("A message needs a name and a few words."),
        "long" => Some("That was too long: a name has at most 40 letters, a message 2000."),
        _ => None,
    }
}

fn counted(messages: usize) -> String {
    match messages {
        0 => "No message yet.".to_owned(),
        1 => "One message.".to_owned(),
        many => format!("{many} messages."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forum_keeps_its_newest_messages() {
        let board = Board::new();
        let forum = board.forum("garden").ok().unwrap();
        for number in 0..=MOST_MESSAGES {
            let text = number.to_string();
            forum.add(Message { author: "a".into(), body: text.as_str().into(), written: 0 });
        }
        let messages = forum.lock();
        assert_eq!(messages.len(), MOST_MESSAGES);
        assert_eq!((messages[0].body.as_str(), messages[99].body.as_str()), ("1", "100"));
    }
}
