//! What the devices of a house are, and what they can be told: known to the program that has them, `devices.rs`, and to the
//! one that calls them, `home.rs`. Where programs are not examples this is a crate.

use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::time::Duration;

use bine::prelude::*;
use serde::{Deserialize, Serialize};

/// What the devices tell of themselves by the event `reading`: when it changes, and each second.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct House {
    /// In degrees.
    pub(crate) warmth: Dial,
    /// In percent: how far they are open.
    pub(crate) shutters: Dial,
    /// What is played; `None` while the player rests.
    pub(crate) song: Option<Text>,
    /// Those who hear it.
    pub(crate) listeners: usize,
}

/// As they are now, in the program that has them.
pub(crate) static HOUSE: LazyLock<Signal<House>> = LazyLock::new(|| {
    let warmth = Dial { now: 18.0, wish: 18.0 };
    Signal::new(House { warmth, ..House::default() })
});

/// What moves to where it is wanted, in its time.
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
    /// What time does to it.
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
        return Err(Error::wrong("song", "is none that the player knows"));
    }
    HOUSE.update(|house| house.song = song);
    Ok(())
}

/// What a detector calls. One home hears it, of all that listen, and sees to it.
#[service("/alarm")]
pub(crate) fn alarm(caller: Caller, what: Text) -> Result<(), Error> {
    if caller.events().signal("alarm", &what)? {
        return Ok(());
    }
    Err(Error::status(Status::SERVICE_UNAVAILABLE, "nobody is there to hear it"))
}

fn check(name: &'static str, value: f64, limits: RangeInclusive<f64>) -> Result<(), Error> {
    if limits.contains(&value) {
        return Ok(());
    }
    let (least, most) = limits.into_inner();
    Err(Error::wrong(name, format!("must be from {least} to {most}")))
}
