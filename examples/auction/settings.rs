//! The settings from the environment.

use std::env::{self, VarError};
use std::str::FromStr;
use std::time::Duration;

pub(crate) struct Settings {
    /// The amount of data; 1 is that of `RUBiS`.
    pub scale: f64,
    pub seed: u64,
    /// The delay of each access to the tables.
    pub delay: Duration,
    /// The kilobytes hashed for each access.
    pub hashes: u32,
    /// The secret that signs passes; empty: a random one.
    pub secret: String,
}

impl Settings {
    /// # Errors
    ///
    /// The invalid variable and its accepted values.
    pub(crate) fn from_environment() -> Result<Self, String> {
        let scale = read("AUCTION_SCALE", 0.01, "a number from 0.0001 to 1, such as 0.1")?;
        if !(0.0001..=1.0).contains(&scale) {
            return Err(format!("AUCTION_SCALE must be a number from 0.0001 to 1, not {scale}"));
        }
        let delay: u16 = read("AUCTION_DELAY_MS", 0, "a whole number of milliseconds up to 65535")?;
        Ok(Self {
            scale,
            seed: read("AUCTION_SEED", 1, "a whole number")?,
            delay: Duration::from_millis(delay.into()),
            hashes: read("AUCTION_HASHES", 0, "a whole number of kilobytes")?,
            secret: read("AUCTION_SECRET", String::new(), "text")?,
        })
    }
}

fn read<T: FromStr>(name: &str, usual: T, kind: &str) -> Result<T, String> {
    match env::var(name) {
        Err(VarError::NotPresent) => Ok(usual),
        Ok(text) => text.parse().map_err(|_| format!("{name} must be {kind}, not `{text}`")),
        Err(VarError::NotUnicode(_)) => Err(format!("{name} must be {kind}")),
    }
}
