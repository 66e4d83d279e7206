//! The list of the board's forums, and how programs follow the board.

use bine::channels::{Retention, Settings};
use bine::prelude::*;

use super::address::Visited;
use super::board::{FORUMS, MAX_MESSAGES, Message};

/// Lists the forums.
#[page("/board")]
pub(crate) async fn forums(request: Request, store: Store) -> impl Respond {
    let now = store.read();
    let forums = FORUMS.map(|forum| (forum, now.find(Message::BY_FORUM, forum).count()));
    let commands = Visited::by(&request).replace_in(COMMANDS);
    html! {
        <h1>"The board"</h1>
        <p class="lead">
            "Two forums, live in every window. Started with "<code>"--data DIR"</code>", this server keeps them
            across restarts. Without a script, they work and do not update."
        </p>
        <ul class="cards">
            {for (forum, messages) in forums {
                <li>
                    <a class="card" href={format!("/board/{forum}")}>
                        <h2>"The "{forum}</h2>
                        <p>{count_text(messages)}</p>
                    </a>
                </li>
            }}
        </ul>
        <h2>"Follow it by a program"</h2>
        <p>
            "The board publishes each message in a "<a href="/guide/channels">"channel"</a>". Every client may follow
            it, from any message on:"
        </p>
        <pre tabindex="0"><code>{commands}</code></pre>
    }
    .with_title("The board")
}

const COMMANDS: &str = "\
curl --no-buffer --header 'Accept: text/event-stream' \\
    'http://127.0.0.1:8080/channels?c=board'
curl --include 'http://127.0.0.1:8080/channels?c=board&after=earliest'
";

/// The settings of the channel `board`.
pub(crate) fn channel_settings() -> Settings {
    let retention = Retention { messages: MAX_MESSAGES as u64, ..Retention::default() };
    Settings { retention, ..Settings::default() }
}

fn count_text(messages: usize) -> String {
    match messages {
        0 => "No message yet.".to_owned(),
        1 => "One message.".to_owned(),
        many => format!("{many} messages."),
    }
}
