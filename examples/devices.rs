//! The devices of a house, which serve pages and are called by a second program: a thermostat,
//! shutters, and a player whose music is streamed to many listeners.
//!
//! Run `cargo run --release --example devices -- --listen 127.0.0.1:8081`, and in parallel the
//! [home](home.rs), the program of the residents. The devices are simulated step by step.

use std::f64::consts::TAU;
use std::thread;
use std::time::{Duration, Instant};

use bine::channels::{Content, Retention, Settings};
use bine::prelude::*;

use house::{HOUSE, House, SONGS, alarm, heat, open, play};

mod house;

const STEP: Duration = Duration::from_millis(100);
/// The header of an endless WAV stream: 16 000 samples per second of 16 bits each.
const HEAD: &[u8] = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0\
    \x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data\xff\xff\xff\xff";
const SAMPLES_PER_STEP: u64 = 1_600;
const SAMPLES_PER_NOTE: u64 = 4_800;

/// One stream for all listeners, each of whom hears it from now on. A listener that falls behind
/// the messages retained by the channel loses its stream.
#[page("/music")]
async fn music(channels: Channels) -> Response {
    Response::stream("audio/wav", async move |mut out| {
        HOUSE.update(|house| house.listeners += 1);
        let _listens = Listener;
        out.send(HEAD).await?;
        let mut pieces = channels.follow(["music"]);
        while let Some(Ok(piece)) = pieces.next().await {
            out.send(piece.bytes()).await?;
        }
        Ok(())
    })
}

/// Counts a listener until it is dropped.
struct Listener;

impl Drop for Listener {
    fn drop(&mut self) {
        HOUSE.update(|house| house.listeners -= 1);
    }
}

#[page("/")]
async fn status(events: Events) -> impl Respond {
    let House { warmth, shutters, song, listeners } = HOUSE.get();
    let homes = events.listeners("alarm");
    html! {
        <h1>Devices</h1>
        <Live><ul>
            <li>"Thermostat: "{format_args!("{:.1}", warmth.now)} of {warmth.wish} degrees</li>
            <li>"Shutters: "{format_args!("{:.0}", shutters.now)} of {shutters.wish} percent</li>
            <li>"Player: "{song.as_deref().unwrap_or("rests")}", "{listeners} listen</li>
            <li>"Alarm: "{homes} homes hear it</li>
        </ul></Live>
    }
    .with_title("Devices")
}

/// Calls `act` at each step until it fails, which it does when the server has ended.
fn at_each_step(
    mut act: impl FnMut(u32) -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    thread::Builder::new().name("devices".to_owned()).spawn(move || {
        let start = Instant::now();
        for step in 1.. {
            thread::park_timeout((start + STEP * step).saturating_duration_since(Instant::now()));
            if act(step).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

fn broadcast_readings(events: Events) -> Result<(), Error> {
    let mut last = House::default();
    at_each_step(move |step| {
        HOUSE.update(|house| house.pass(STEP));
        let now = HOUSE.get();
        if now != last || step % 10 == 0 {
            events.broadcast("reading", &now)?;
            last = now;
        }
        Ok(())
    })
}

fn perform(channels: Channels) -> Result<(), Error> {
    at_each_step(move |step| {
        let song = HOUSE.with(|house| house.song.clone());
        let song = SONGS.iter().find(|(name, _)| song.as_deref() == Some(name));
        let notes = song.map_or("-", |(_, notes)| notes);
        let first = u64::from(step) * SAMPLES_PER_STEP;
        let samples = (first..first + SAMPLES_PER_STEP).map(|at| sound(notes, at));
        let body: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
        channels.publish("music", Content { body: body.into(), ..Content::default() }).wait()?;
        Ok(())
    })
}

/// One sample of a song, whose notes sound like plucked strings.
fn sound(notes: &str, at: u64) -> i16 {
    let note = notes.as_bytes()[(at / SAMPLES_PER_NOTE) as usize % notes.len()];
    let Some(key) = b"C.D.EF.G.A.B".iter().position(|name| *name == note) else { return 0 };
    let hertz = 261.6 * 2_f64.powf(key as f64 / 12.0);
    let time = (at % SAMPLES_PER_NOTE) as f64 / 16_000.0;
    (12_000.0 * (TAU * hertz * time).sin() * (-5.0 * time).exp()) as i16
}

fn main() -> Exit {
    let backlog = Retention { messages: 50, ..Retention::default() };
    App::new()
        .in_memory()
        .style("body { max-width: 44rem; margin: 2rem auto; font: 1.1rem/1.5 system-ui }")
        .event("reading")
        .event("alarm")
        .channel("music", Settings { retention: backlog, ..Settings::default() })
        .on_events_open(|events| broadcast_readings(events.clone()))
        .on_channels_open(|channels| perform(channels.clone()))
        .page(status)
        .page(music)
        .service(heat)
        .service(open)
        .service(play)
        .service(alarm)
        .run()
}
