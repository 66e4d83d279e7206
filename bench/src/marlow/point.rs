//! One measurement, as text.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

use crate::marlow::site::{MarlowContent, MarlowServer};
use crate::record::PointText;

/// The purpose of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarlowPart {
    /// The load generator with the fastest possible server, on a whole core.
    Generator,
    /// A rate of requests.
    Load,
    /// A rate of malformed requests, during a steady load.
    Garbage,
    /// A rate of heads that never end, during the same load.
    Heads,
}

/// One measurement. Points with different origins are never shown together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MarlowPoint {
    pub(super) part: MarlowPart,
    /// `None`: the floor, for [`MarlowPart::Generator`].
    pub(super) server: Option<MarlowServer>,
    pub(super) content: MarlowContent,
    /// Connections per second; of a flood, its own.
    pub(super) rate: u64,
    pub(super) round: u64,
    /// Version, machine and options, without commas.
    pub(super) origin: String,
}

impl MarlowPart {
    const ALL: [Self; 4] = [Self::Generator, Self::Load, Self::Garbage, Self::Heads];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Generator => "generator",
            Self::Load => "load",
            Self::Garbage => "garbage",
            Self::Heads => "heads",
        }
    }
}

impl FromStr for MarlowPart {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|part| part.name() == name);
        known.with_context(|| {
            format!("`{name}` is none of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

impl PointText for MarlowPoint {
    const HEADER: &'static str = "part,server,content,rate,round,origin";
}

impl fmt::Display for MarlowPoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.server.map_or("floor", MarlowServer::name);
        let (part, content) = (self.part.name(), self.content.name());
        write!(out, "{part},{server},{content},{},{},{}", self.rate, self.round, self.origin)
    }
}

impl FromStr for MarlowPoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split(',').collect();
        ensure!(words.len() == 6, "`{text}` is not a point");
        Ok(Self {
            part: words[0].parse()?,
            server: if words[1] == "floor" { None } else { Some(words[1].parse()?) },
            content: words[2].parse()?,
            rate: words[3].parse()?,
            round: words[4].parse()?,
            origin: words[5].to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    //! Points as text.

    use super::*;

    #[test]
    fn stores_points_as_text() {
        for part in MarlowPart::ALL {
            for server in MarlowServer::ALL.map(Some).into_iter().chain([None]) {
                let (content, origin) = (MarlowContent::Page, "0.1.0 (abc); Linux".to_owned());
                let point = MarlowPoint { part, server, content, rate: 250, round: 2, origin };
                assert_eq!(point.to_string().parse::<MarlowPoint>().unwrap(), point);
            }
        }
        for text in ["", "load,bine,page,1,1", "rest,nginx,file,1,1,x", "load,x,file,1,1,y"] {
            assert!(text.parse::<MarlowPoint>().is_err(), "{text}");
        }
    }
}
