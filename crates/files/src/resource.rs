//! A file with its precompressed variants.

use std::fs::{File, Metadata};
use std::io;

use bine_http::{Coding, negotiate};
use bine_server::Answer;

use crate::description::{Description, Variant};
use crate::open_file::OpenFile;
use crate::response::Responder;
use crate::small_file::SmallFile;

/// A file and its precompressed variants, as they were when the path was looked up.
#[derive(Debug)]
pub(crate) struct Resource {
    identity: Representation,
    encoded: Vec<(Coding, Representation)>,
}

/// One variant of the content.
#[derive(Debug)]
enum Representation {
    Small(SmallFile),
    Large(OpenFile),
}

/// A precompressed variant that was found on disk.
#[derive(Debug)]
pub(crate) struct Precompressed {
    pub(crate) encoding: Coding,
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
}

impl Resource {
    /// Reads small files into memory and keeps large ones open. `describe` creates the description
    /// of one variant.
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

    /// Responds with the variant that the client prefers.
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
        // In the server's order of preference.
        let available = self.encoded.iter().map(|(encoding, _)| *encoding);
        let chosen = negotiate(accepted, available);
        chosen
            .and_then(representation)
            .map_or(&self.identity, |(_, representation)| representation)
            .respond(responder)
    }

    /// Returns the bytes that it holds in memory, or `None` if a variant is only on disk.
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

    /// Whether it was compared with the disk in this second.
    pub(crate) const fn is_fresh(&self, second: u64) -> bool {
        match &self.identity {
            Representation::Small(file) => file.is_fresh(second),
            Representation::Large(_) => false,
        }
    }

    /// Compares it with the current state on disk. Returns `false` if it must be read again.
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
        // The original is last, because its revalidation marks the whole resource as fresh.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A time long after the last change of the files that the tests read.
    const FAR_FUTURE: u64 = 100_000_000_000;

    /// Opens a file whose content is in the kernel's page cache. Reading it first ensures that.
    fn open_cached(path: &str) -> io::Result<(File, Metadata)> {
        std::fs::read(path)?;
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        Ok((file, metadata))
    }

    /// Opens a file as the only precompressed variant of another one.
    fn variant(path: &str) -> io::Result<Vec<Precompressed>> {
        let (file, metadata) = open_cached(path)?;
        Ok(vec![Precompressed { encoding: Coding::Gzip, file, metadata }])
    }

    #[test]
    fn stays_current_until_the_file_or_a_variant_changes() -> io::Result<()> {
        let (file, metadata) = open_cached("Cargo.toml")?;
        let precompressed = variant("src/lib.rs")?;
        let mut resource = Resource::read(
            file,
            metadata.clone(),
            precompressed,
            FAR_FUTURE,
            |metadata, variant| Description::of("/Cargo.toml", metadata, FAR_FUTURE, variant, &[]),
        )?;
        let (_, other) = open_cached("src/cache.rs")?;
        let second = FAR_FUTURE + 1;
        assert!(!resource.revalidate(&other, &variant("src/lib.rs")?, second));
        assert!(!resource.revalidate(&metadata, &variant("src/cache.rs")?, second));
        assert!(!resource.revalidate(&metadata, &[], second));
        assert!(!resource.is_fresh(second));
        assert!(resource.revalidate(&metadata, &variant("src/lib.rs")?, second));
        assert!(resource.is_fresh(second));
        Ok(())
    }
}
