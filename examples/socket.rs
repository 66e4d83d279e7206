//! A WebSocket echo server, with messages of up to 16 MiB.
//!
//! Run `cargo run --release --example socket`, then open <http://127.0.0.1:8080/>.

use bine::prelude::*;

#[page("/socket")]
async fn socket(upgrade: Upgrade) -> Response {
    upgrade.with_protocols(&["echo"]).with_max_message_size(16 << 20).accept(async |mut socket| {
        while let Some(message) = socket.receive().await? {
            socket.send(message).await?;
        }
        Ok(())
    })
}

#[page("/")]
async fn start() -> impl Page {
    html! {
        <form id="say">
            <input id="word" aria-label="Say something" autofocus /> <button>Say it</button>
        </form>
        <ol id="heard"></ol>
        <script src="/socket.js" defer></script>
    }
}

const SCRIPT: &str = "
    const socket = new WebSocket(location.href.replace('http', 'ws') + 'socket', 'echo');
    socket.onmessage = event => {
        const item = document.createElement('li');
        item.textContent = event.data;
        heard.append(item);
    };
    say.onsubmit = () => {
        socket.send(word.value);
        word.value = '';
        return false;
    };
";

fn main() -> Exit {
    App::new()
        .page(start)
        .page(socket)
        .asset("/socket.js", "text/javascript", SCRIPT.as_bytes())
        .run()
}
