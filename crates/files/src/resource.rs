//! Decides what a path means to a peer: a file, or a packed form of it that lies beside it.

use std::fs::{File, Metadata};
use std::io;

use bine_pipeline::Answer;

use crate::answer::Blank;
use crate::coding::{Coding, choose};
use crate::description::{Description, Variant};
use crate::open::OpenFile;
use crate::small::SmallFile;

/// A file and its packed forms, as they were when somebody looked.
#[derive(Debug)]
pub(crate) struct Resource {
    plain: Form,
    coded: Vec<(Coding, Form)>,
}

/// One of them.
#[derive(Debug)]
enum Form {
    Small(SmallFile),
    Large(OpenFile),
}

/// A packed form that was found beside a file.
#[derive(Debug)]
pub(crate) struct Sibling {
    pub(crate) coding: Coding,
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
}

impl Resource {
    /// Reads what is small, and keeps the rest open. `describe` tells of one form.
    pub(crate) fn read(
        file: File,
        metadata: Metadata,
        siblings: Vec<Sibling>,
        second: u64,
        describe: impl Fn(&Metadata, Variant) -> Description,
    ) -> io::Result<Self> {
        let variant = if siblings.is_empty() { Variant::Only } else { Variant::Plain };
        let plain = Form::read(file, metadata, second, |metadata| describe(metadata, variant))?;
        let coded = siblings.into_iter().map(|Sibling { coding, file, metadata }| {
            let variant = Variant::Coded(coding);
            let form = Form::read(file, metadata, second, |metadata| describe(metadata, variant))?;
            Ok((coding, form))
        });
        Ok(Self { plain, coded: coded.collect::<io::Result<_>>()? })
    }

    /// Answers with the form that the peer likes best.
    #[inline]
    pub(crate) fn answer(&self, blank: &mut Blank<'_>) -> Answer {
        if self.coded.is_empty() { self.plain.answer(blank) } else { self.choose(blank) }
    }

    fn choose(&self, blank: &mut Blank<'_>) -> Answer {
        let form = |wanted| self.coded.iter().find(|(coding, _)| *coding == wanted);
        let fields = blank.head.iter().flat_map(bine_http::Head::fields);
        let accepted = fields
            .filter(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"))
            .map(|(_, value)| value);
        let chosen = choose(accepted, |coding| form(coding).is_some());
        chosen.and_then(form).map_or(&self.plain, |(_, form)| form).answer(blank)
    }

    /// The bytes it holds in memory; `None`: a part of it is on the disk alone.
    pub(crate) fn in_memory(&self) -> Option<usize> {
        let forms = self.coded.iter().map(|(_, form)| form).chain([&self.plain]);
        forms
            .map(|form| match form {
                Form::Small(file) => Some(file.len()),
                Form::Large(_) => None,
            })
            .sum()
    }

    /// Whether it was compared with the disk in this very second.
    pub(crate) const fn is_fresh(&self, second: u64) -> bool {
        match &self.plain {
            Form::Small(file) => file.is_fresh(second),
            Form::Large(_) => false,
        }
    }

    /// Told what its path means now; `false` if it must be read again.
    pub(crate) fn confirm(
        &mut self,
        metadata: &Metadata,
        siblings: &[Sibling],
        second: u64,
    ) -> bool {
        let known = self.coded.iter().map(|(coding, _)| *coding);
        if !known.eq(siblings.iter().map(|sibling| sibling.coding)) {
            return false;
        }
        let forms = self.coded.iter_mut().map(|(_, form)| form);
        let mut pairs = forms.zip(siblings.iter().map(|sibling| &sibling.metadata));
        // The file itself last: it is what makes all of them fresh.
        pairs.all(|(form, metadata)| form.confirm(metadata, second))
            && self.plain.confirm(metadata, second)
    }
}

impl Form {
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
    fn answer(&self, blank: &mut Blank<'_>) -> Answer {
        match self {
            Self::Small(file) => file.answer(blank),
            Self::Large(file) => file.answer(blank),
        }
    }

    fn confirm(&mut self, metadata: &Metadata, second: u64) -> bool {
        match self {
            Self::Small(file) => file.confirm(metadata, second),
            Self::Large(_) => false,
        }
    }
}
