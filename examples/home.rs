//! A house in the browser. Run `cargo run --release --example home` in parallel with its
//! [devices](devices.rs), a separate program. `DEVICES` is the address of that program, also for
//! browsers, if it is not <http://127.0.0.1:8081>.

use std::sync::LazyLock;
use std::time::Duration;
use std::{env, thread};

use bine::prelude::*;
use bine::remote::{self, Remote, remote};

use house::{House, SONGS};

#[allow(dead_code, reason = "the other program runs the devices")]
mod house;

static ADDRESS: LazyLock<String> =
    LazyLock::new(|| env::var("DEVICES").unwrap_or_else(|_| "http://127.0.0.1:8081".to_owned()));
static DEVICES: LazyLock<Remote> = LazyLock::new(|| remote(&ADDRESS));
/// The last reading.
static HOUSE: LazyLock<Signal<House>> = LazyLock::new(Signal::default);
static ARE_AWAY: LazyLock<Signal<bool>> = LazyLock::new(|| Signal::new(true));
static ALARM: LazyLock<Signal<Option<Text>>> = LazyLock::new(Signal::default);

#[page("/")]
async fn home() -> impl Respond {
    let House { warmth, shutters, song, listeners } = HOUSE.get();
    let (are_away, is_quiet) = (ARE_AWAY.get(), song.is_none());
    html! {
        <h1>Home</h1>
        <Live><p role="status" class={if are_away { style::away } else { style::here }}>
            {if are_away { "The devices are away; this is how they were." } else { "The devices are here." }}
        </p></Live>
        <Live>{if let Some(what) = ALARM.get() {
            <form method="post" action={calm} class={style::alarm}>
                <p role="alert">{what}</p><button>"I see to it"</button>
            </form>
        }}</Live>
        <section aria-labelledby="heat">
            <h2 id="heat">Warmth</h2>
            <Live><output>{format_args!("{:.1}", warmth.now)}" \u{b0}C"</output></Live>
            <form method="post" action={heat}>
                <Live><label>
                    "Wish "<input type="number" name="degrees" min="5" max="30" step="0.5" value={warmth.wish}>
                </label></Live>
                <button>Set</button>
            </form>
        </section>
        <section aria-labelledby="shutters">
            <h2 id="shutters">Shutters</h2>
            <Live><output>{format_args!("{:.0}", shutters.now)}" % open"</output></Live>
            <form method="post" action={open} data-on="change: submit">
                <Live><input type="range" name="percent" max="100" value={shutters.wish} aria-label="Percent"></Live>
                <button>Set</button>
            </form>
        </section>
        <section aria-labelledby="music">
            <h2 id="music">Music</h2>
            <Live><output>{song.as_deref().unwrap_or("Silence")}</output> <p>{listeners} listen</p></Live>
            <form method="post" action={play}>
                {for (name, _) in SONGS { <button name="song" value={name}>{name}</button> }}
                <Live><button name="song" value="" disabled={is_quiet}>Silence</button></Live>
            </form>
            <audio controls preload="none" src={format_args!("{}/music", *ADDRESS)} aria-label="Music"></audio>
        </section>
        <form method="post" action={smoke}><button>Try the smoke alarm</button></form>
    }
    .with_title("Home")
}

#[service]
async fn heat(degrees: f64) -> Result<(), Error> {
    DEVICES.call(house::heat, (degrees,)).await.map_err(to_error)
}

#[service]
async fn open(percent: f64) -> Result<(), Error> {
    DEVICES.call(house::open, (percent,)).await.map_err(to_error)
}

#[service]
async fn play(song: Option<Text>) -> Result<(), Error> {
    DEVICES.call(house::play, (song,)).await.map_err(to_error)
}

#[service]
async fn smoke() -> Result<(), Error> {
    let what = "Smoke in the kitchen".into();
    DEVICES.call(house::alarm, (what,)).await.map_err(to_error)
}

#[service]
fn calm() {
    ALARM.set(None);
}

fn to_error(error: remote::Error) -> Error {
    let remote::Error::Unreached(_) = error else { return error.into() };
    Error::status(Status::SERVICE_UNAVAILABLE, "the devices are away, and nothing has changed")
}

/// Displays the readings of the devices. The devices count as away when their program ends or is
/// silent for longer than the interval of readings.
fn follow() {
    let mut readings = DEVICES.on("reading");
    loop {
        let reading = readings.wait(Duration::from_secs(5));
        ARE_AWAY.set(!matches!(reading, Some(Ok(_))));
        if let Some(Ok(reading)) = reading {
            HOUSE.set(reading);
        }
    }
}

fn listen() {
    let mut alarms = DEVICES.on("alarm");
    loop {
        if let Some(Ok(what)) = alarms.wait(Duration::from_mins(1)) {
            ALARM.set(Some(what));
        }
    }
}

fn main() -> Exit {
    App::new()
        .on_start(|| {
            thread::spawn(follow);
            thread::spawn(listen);
        })
        .page(home)
        .service(heat)
        .service(open)
        .service(play)
        .service(smoke)
        .service(calm)
        .run()
}

css! {
    mod style;

    body { max-width: 44rem; margin: 2rem auto; padding: 0 1rem; font: 1.1rem/1.5 system-ui, sans-serif; }
    section, .alarm { margin: 1rem 0; padding: 1rem 1.5rem; border-radius: 12px; background: honeydew; }
    h2 { margin: 0; font-size: 1rem; color: seagreen; }
    output { font-size: 2rem; font-weight: 600; }
    form { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: center; }
    button, input { font: inherit; }
    audio { width: 100%; margin-top: 1rem; }
    .here { color: seagreen; }
    .away { color: firebrick; }
    .away ~ section output { opacity: 0.4; }
    .alarm { background: mistyrose; }
}
