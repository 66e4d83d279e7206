//! Decides what a path means to a peer: a file, or a packed form of it that lies beside it.

use std::fs::{File, Metadata};
use std::io;

use bine_pipeline::Answer;

use crate::description::{Description, Variant};
use crate::encoding::{Encoding, negotiate};
use crate::open::OpenFile;
use crate::response::Responder;
use crate::small::SmallFile;

/// A file and its packed forms, as they were when somebody looked.
#[derive(Debug)]
pub(crate) struct Resource {
    identity: Representation,
    encoded: Vec<(Encoding, Representation)>,
}

/// One of them.
#[derive(Debug)]
enum Representation {
    Small(SmallFile),
    Large(OpenFile),
}

/// A packed form that was found beside a file.
#[derive(Debug)]
pub(crate) struct Precompressed {
    pub(crate) encoding: Encoding,
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
}

impl Resource {
    /// Reads what is small, and keeps the rest open. `describe` tells of one form.
    pub(crate) fn read(
        file: File,
        metadata: Metadata,
        precompressed: Vec<Precompressed>,
        second: u64,
        describe: impl Fn(&Metadata, Variant) -> Description,
    ) -> io::Result<Self> {
        let variant = if precompressed.is_empty() { Variant::Single } else { Variant::Identity };
        let identity =
            Representation::read(file, metadata, second, |metadata| describe(metadata, variant))?;
        let encoded =
            precompressed.into_iter().map(|Precompressed { encoding, file, metadata }| {
                let variant = Variant::Encoded(encoding);
                let representation = Representation::read(file, metadata, second, |metadata| {
                    describe(metadata, variant)
                })?;
                Ok((encoding, representation))
            });
        Ok(Self { identity, encoded: encoded.collect::<io::Result<_>>()? })
    }

    /// Answers with the form that the peer likes best.
    #[inline]
    pub(crate) fn respond(&self, responder: &mut Responder<'_>) -> Answer {
        if self.encoded.is_empty() {
            self.identity.respond(responder)
        } else {
            self.respond_negotiated(responder)
        }
    }

    fn respond_negotiated(&self, responder: &mut Responder<'_>) -> Answer {
        let representation =
            |requested| self.encoded.iter().find(|(encoding, _)| *encoding == requested);
        let fields = responder.head.iter().flat_map(bine_http::Head::fields);
        let accepted = fields
            .filter(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"))
            .map(|(_, value)| value);
        let chosen = negotiate(accepted, |encoding| representation(encoding).is_some());
        chosen
            .and_then(representation)
            .map_or(&self.identity, |(_, representation)| representation)
            .respond(responder)
    }

    /// The bytes it holds in memory; `None`: a part of it is on the disk alone.
    pub(crate) fn cached_bytes(&self) -> Option<usize> {
        let representations =
            self.encoded.iter().map(|(_, representation)| representation).chain([&self.identity]);
        representations
            .map(|representation| match representation {
                Representation::Small(file) => Some(file.len()),
                Representation::Large(_) => None,
            })
            .sum()
    }

    /// Whether it was compared with the disk in this very second.
    pub(crate) const fn is_fresh(&self, second: u64) -> bool {
        match &self.identity {
            Representation::Small(file) => file.is_fresh(second),
            Representation::Large(_) => false,
        }
    }

    /// Told what its path means now; `false` if it must be read again.
    pub(crate) fn revalidate(
        &mut self,
        metadata: &Metadata,
        precompressed: &[Precompressed],
        second: u64,
    ) -> bool {
        let encodings = self.encoded.iter().map(|(encoding, _)| *encoding);
        if !encodings.eq(precompressed.iter().map(|file| file.encoding)) {
            return false;
        }
        let representations = self.encoded.iter_mut().map(|(_, representation)| representation);
        let mut pairs = representations.zip(precompressed.iter().map(|file| &file.metadata));
        // The file itself last: it is what makes all of them fresh.
        pairs.all(|(representation, metadata)| representation.revalidate(metadata, second))
            && self.identity.revalidate(metadata, second)
    }
}

impl Representation {
    fn read(
        file: File,
        mut metadata: Metadata,
        second: u64,
        describe: impl Fn(&Metadata) -> Description,
    ) -> io::Result<Self> {
        Ok(match SmallFile::read(&file, &mut metadata, second, &describe)? {
            Some(small) => Self::Small(small),
            None => Self::Large(OpenFile::new(file, describe(&metadata))),
        })
    }

    #[inline]
    fn respond(&self, responder: &mut Responder<'_>) -> Answer {
        match self {
            Self::Small(file) => file.respond(responder),
            Self::Large(file) => file.respond(responder),
        }
    }

    fn revalidate(&mut self, metadata: &Metadata, second: u64) -> bool {
        match self {
            Self::Small(file) => file.revalidate(metadata, second),
            Self::Large(_) => false,
        }
    }
}
