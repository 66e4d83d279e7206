//! The front page: one board in two windows, its source, and numbers of this server.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::time::Instant;

use bine::{ServerHandle, ServerStats, prelude::*};

use super::highlight::highlight;
use super::numbers::{HISTORY, LiveNumbers, Numbers};

/// The file that runs in the windows.
const SOURCE: &str = include_str!("board.rs");

/// The forum of the windows.
const FORUM: &str = "/board/garden";

css! {
    mod style;

    .numbers {
        display: flex;
        flex-wrap: wrap;
        gap: 1px;
        margin: 0;
        border: 1px solid var(--line);
        border-radius: 14px;
        background: var(--line);
        overflow: hidden;
        > div { min-width: 0; flex: 1 1 9.5rem; padding: 1.1rem 1.3rem 1rem; background: var(--card); }
        dt { color: var(--soft); font-size: 0.85rem; }
        dd { margin: 0; font-size: 1.75rem; font-weight: 650; font-variant-numeric: tabular-nums; letter-spacing: -0.02 em; line-height: 1.3; }
        small { margin-left: 0.3rem; color: var(--soft); font-size: 0.85rem; font-weight: 400; letter-spacing: 0; }
        svg { display: block; width: 100%; height: 1.5rem; overflow: visible; }
    }
}

/// Shows the windows, the source and the numbers. The session begins here, because the two windows
/// would begin one each.
#[page("/")]
pub(crate) async fn home(
    session: Session,
    server: ServerHandle,
    numbers: State<LiveNumbers>,
) -> impl Respond {
    static COLORED: OnceLock<String> = OnceLock::new();
    // Before the page is timed: only the first page colors the source.
    let colored = COLORED.get_or_init(|| highlight(SOURCE, "rust"));
    html! {
        {let started = Instant::now();}
        <section class="hero">
            <div>
                <p class="running">"Bine is running, and calls you "{session.name()}</p>
                <h1>"One file of Rust, live in every window"</h1>
                <p class="lead">
                    "Both windows run the Rust file on this page. Write in one: the server renders the list again and
                    sends it to all open windows. No JavaScript to write, no message broker, no database server."
                </p>
            </div>
            <p class="buttons">
                <a class="button" href="/guide/tutorial">"Build your own"</a>
                <a class="button quiet" href="/guide">"Read the guide"</a>
            </p>
        </section>
        {stage(colored)}
        <section class="now" aria-labelledby="now">
            <h2 id="now">"This server, now"</h2>
            {let numbers = numbers.read_in_front_page(&server, started);}
            {number_list(numbers)}
            <p class="note">
                "The server takes these numbers once a second while somebody looks. "
                <a href="/numbers">"Open them alone"</a>", as a live region that no script of the demo renews."
            </p>
            <script type="module" src="/numbers.js"></script>
        </section>
        <section aria-labelledby="next">
            <h2 id="next">"Where to go on"</h2>
            <ul class="cards">
                {for (address, title, words) in CARDS {
                    <li><a class="card" href={address}><h3>{title}</h3><p>{words}</p></a></li>
                }}
            </ul>
        </section>
        <section class="own" aria-labelledby="own">
            <div>
                <h2 id="own">"Your own"</h2>
                <p>
                    "Put a folder on the web with one command, or write a program: the "<a href="/guide/tutorial">"tutorial"</a>
                    " builds a board like this one in ten steps, up to its deployment and backups."
                </p>
            </div>
            <pre tabindex="0"><code>{raw(highlight(COMMANDS, "sh"))}</code></pre>
        </section>
    }
    .with_title("Bine")
}

/// Shows the numbers alone, in a live region.
#[page("/numbers")]
pub(crate) async fn numbers(server: ServerHandle, numbers: State<LiveNumbers>) -> impl Respond {
    html! {
        <h1>"This server, now"</h1>
        <Live>{number_list(numbers.read(&server))}</Live>
    }
    .with_title("This server, now")
}

/// Writes the two windows and the source of the board, which is colored already.
fn stage(colored: &'static str) -> impl Html<Flow> {
    html! {
        <section class="stage" aria-label="A live board and its source">
            {for name in ["First window", "Second window"] {
                <div class="window">
                    <p class="title"><i></i><span>{name}</span><a href={FORUM} target="_blank">"Open alone"</a></p>
                    <iframe src={FORUM} title={name}></iframe>
                </div>
            }}
            <div class="window source">
                <p class="title"><i></i><span>"crates/cli/src/demo/board.rs"</span><a href="/source/crates/cli/src/demo/board.rs">"Whole page"</a></p>
                <pre tabindex="0" aria-label="The source of the board"><code>{raw(colored)}</code></pre>
            </div>
        </section>
    }
}

/// Writes the numbers of this moment.
fn number_list(numbers: Numbers) -> impl Html<Flow> {
    let Numbers { stats, rates, page_time } = numbers;
    html! {
        <dl class={style::numbers}>
            <div>
                <dt>"Open connections"</dt>
                <dd>{stats.map_or(0, |stats| stats.connections)}</dd>
            </div>
            <div>
                <dt>"Requests per second"</dt>
                <dd>{rate_text(&rates)}<small>{requests_text(stats)}</small></dd>
            </div>
            <div>
                <dt>"Memory"</dt>
                <dd>{memory_text(stats)}<small>"MB resident"</small></dd>
            </div>
            <div>
                <dt>"Time to write the front page"</dt>
                <dd>{page_time.as_micros()}<small>"\u{b5}s"</small></dd>
            </div>
            <div class="curve">
                <dt>"Requests in the last minute"</dt>
                <dd>
                    <svg viewBox="0 0 60 20" preserveAspectRatio="none" aria-hidden="true">
                        <polyline points={curve(&rates)} />
                    </svg>
                </dd>
            </div>
        </dl>
    }
}

const CARDS: [(&str, &str, &str); 4] = [
    ("/guide", "The guide", "40 chapters with search, from the first page to operating a server."),
    ("/source", "Examples", "One program per feature, each in one file."),
    ("/board", "The board", "Two forums that programs can follow too, by a channel."),
    (
        "/gallery",
        "The gallery",
        "Files from a kilobyte to a hundred megabytes, sent by the kernel.",
    ),
];

const COMMANDS: &str = "\
bine serve DIR            # the files below DIR
bine config               # every setting, and where it came from
bine --help               # all options
";

fn rate_text(rates: &[f64]) -> String {
    let latest = rates.last().copied().unwrap_or_default();
    if latest < 9.95 { format!("{latest:.1}") } else { format!("{latest:.0}") }
}

fn requests_text(stats: Option<ServerStats>) -> String {
    format!("{} in all", stats.map_or(0, |stats| stats.requests))
}

fn memory_text(stats: Option<ServerStats>) -> String {
    let resident = stats.and_then(|stats| stats.resident_bytes);
    resident.map_or_else(|| "?".to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1e6))
}

/// The points of the curve of requests per second, the newest at the right edge.
fn curve(rates: &[f64]) -> String {
    let most = rates.iter().copied().fold(1.0, f64::max);
    let mut points = format!("0,19 {},19", HISTORY - rates.len());
    for (at, rate) in rates.iter().enumerate() {
        let x = HISTORY - rates.len() + at + 1;
        let _ = write!(points, " {x},{:.1}", 19.0 - 18.0 * rate / most);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_rates_up_to_the_right_edge() {
        assert_eq!(curve(&[]), "0,19 60,19");
        assert_eq!(curve(&[0.0, 5.0, 10.0]), "0,19 57,19 58,19.0 59,10.0 60,1.0");
        assert!(curve(&[1.0; HISTORY]).starts_with("0,19 0,19 1,1.0 2,1.0 "));
    }

    #[test]
    fn writes_small_rates_with_a_fraction() {
        assert_eq!(
            [rate_text(&[]), rate_text(&[0.5]), rate_text(&[1.0, 120.4])],
            ["0.0", "0.5", "120"]
        );
    }

    #[test]
    fn counts_the_chapters_of_the_guide() {
        let count = super::super::guide::CHAPTERS.len();
        assert!(CARDS[0].2.starts_with(&format!("{count} chapters")), "{count}");
    }
}
