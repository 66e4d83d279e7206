//! The devices of a house and their services, shared by the program that runs them, `devices.rs`,
//! and the one that calls them, `home.rs`. In a real project this is a crate.

use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::time::Duration;

use bine::prelude::*;
use serde::{Deserialize, Serialize};

/// The state that the devices broadcast as the event `reading`: at each change, and every second.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct House {
    /// In degrees.
    pub(crate) warmth: Dial,
    /// In percent; 100 is fully open.
    pub(crate) shutters: Dial,
    /// The current song; `None` if the player is silent.
    pub(crate) song: Option<Text>,
    /// The number of listeners.
    pub(crate) listeners: usize,
}

/// The current state, in the program that runs the devices.
pub(crate) static HOUSE: LazyLock<Signal<House>> = LazyLock::new(|| {
    let warmth = Dial { now: 18.0, wish: 18.0 };
    Signal::new(House { warmth, ..House::default() })
});

/// A value that moves gradually to its target.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Dial {
    pub(crate) now: f64,
    pub(crate) wish: f64,
}

/// Names and notes; `-` is a rest.
pub(crate) const SONGS: [(&str, &str); 3] = [
    ("Brother John", "CDECCDECEFG-EFG-GAGFECGAGFECCGC-CGC-"),
    ("Ode to Joy", "EEFGGFEDCCDEED--EEFGGFEDCCDEDC--"),
    ("Twinkle, twinkle", "CCGGAAG-FFEEDDC-GGFFEED-GGFFEED-"),
];

impl House {
    /// Advances the simulation.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.warmth.turn(0.5 * time.as_secs_f64());
        self.shutters.turn(20.0 * time.as_secs_f64());
    }
}

impl Dial {
    fn turn(&mut self, most: f64) {
        self.now += (self.wish - self.now).clamp(-most, most);
    }
}

#[service("/thermostat/heat")]
pub(crate) fn heat(degrees: f64) -> Result<(), Error> {
    check("degrees", degrees, 5.0..=30.0)?;
    HOUSE.update(|house| house.warmth.wish = degrees);
    Ok(())
}

#[service("/shutters/open")]
pub(crate) fn open(percent: f64) -> Result<(), Error> {
    check("percent", percent, 0.0..=100.0)?;
    HOUSE.update(|house| house.shutters.wish = percent);
    Ok(())
}

#[service("/player/play")]
pub(crate) fn play(song: Option<Text>) -> Result<(), Error> {
    if song.as_ref().is_some_and(|song| !SONGS.iter().any(|(name, _)| **name == **song)) {
        return Err(Error::invalid_argument("song", "is none that the player knows"));
    }
    HOUSE.update(|house| house.song = song);
    Ok(())
}

/// Called by a smoke detector. One of the homes that listen receives the alarm and handles it.
#[service("/alarm")]
pub(crate) fn alarm(caller: Caller, what: Text) -> Result<(), Error> {
    if caller.events().notify_one("alarm", &what)? {
        return Ok(());
    }
    Err(Error::status(Status::SERVICE_UNAVAILABLE, "nobody is there to hear it"))
}

fn check(name: &'static str, value: f64, limits: RangeInclusive<f64>) -> Result<(), Error> {
    if limits.contains(&value) {
        return Ok(());
    }
    let (least, most) = limits.into_inner();
    Err(Error::invalid_argument(name, format!("must be from {least} to {most}")))
}
