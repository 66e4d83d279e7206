//! Decides what a selector is: which elements it means (Selectors Level 4, of its syntax what trees need).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::str::FromStr;

use super::Element;

mod parse;

/// So many simple elements may stand in a row: each is one bit of a [`Trail`].
const LONGEST: usize = 64;

/// Which elements of a tree are meant: `main > h2.title, a[href^="/"]`.
///
/// It knows types (`p`, `*`), `#id`, `.class`, attributes (`[a]`, `[a=b]`, `~=`, `^=`, `$=`, `*=`), descendants (a
/// space), children (`>`) and lists (`,`). Names of elements and attributes match in either case, values as they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selector {
    alternatives: Vec<Path>,
}

/// Elements one below the other, the outermost first.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Path {
    steps: Vec<Step>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Step {
    /// Whether it is a child of the step before, not only a descendant.
    is_child: bool,
    tests: Vec<Test>,
}

/// What one element must be.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Test {
    Type(Box<str>),
    Attribute(Box<str>, Relation),
}

/// How the value of an attribute must be to the one of the selector.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Relation {
    Present,
    Equal(Box<str>),
    /// One of its words.
    Word(Box<str>),
    Start(Box<str>),
    End(Box<str>),
    Part(Box<str>),
}

/// What is wrong with a selector, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectorError {
    selector: Box<str>,
    /// In bytes from the start of the selector.
    place: usize,
    wrong: String,
}

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::selector(text)
    }

    /// Whether an element without any around it is meant.
    pub fn matches(&self, element: &Element) -> bool {
        self.alternatives.iter().any(|path| path.step_into(Trail::default(), element).is_end(path))
    }

    /// The trails before anything was met, one for each alternative.
    pub(super) fn trails(&self) -> Vec<Trail> {
        self.alternatives.iter().map(|_| Trail::default()).collect()
    }

    /// The trails below an element, and whether it is meant.
    pub(super) fn step_into(&self, trails: &[Trail], element: &Element) -> (Vec<Trail>, bool) {
        let mut is_meant = false;
        let step = |(path, trail): (&Path, &Trail)| {
            let trail = path.step_into(*trail, element);
            is_meant |= trail.is_end(path);
            trail
        };
        (self.alternatives.iter().zip(trails).map(step).collect(), is_meant)
    }
}

/// How much of a path was met on the way down to an element: a bit for each step. What is below needs to know no more
/// of what is around it, so that no way up is tried twice.
#[derive(Clone, Copy, Default)]
pub(super) struct Trail {
    /// Steps that the element itself may be, with all before them around it.
    here: u64,
    /// Steps that any element around or the element itself may be.
    above: u64,
}

impl Trail {
    const fn is_end(self, path: &Path) -> bool {
        self.here >> (path.steps.len() - 1) & 1 == 1
    }
}

impl Path {
    fn step_into(&self, trail: Trail, element: &Element) -> Trail {
        let mut here = 0;
        for (index, step) in self.steps.iter().enumerate() {
            let before = if step.is_child { trail.here } else { trail.above };
            let is_reached = index == 0 || before >> (index - 1) & 1 == 1;
            if is_reached && step.tests.iter().all(|test| test.holds(element)) {
                here |= 1 << index;
            }
        }
        Trail { here, above: trail.above | here }
    }
}

impl Test {
    fn holds(&self, element: &Element) -> bool {
        match self {
            Self::Type(name) => element.name().eq_ignore_ascii_case(name),
            Self::Attribute(name, relation) => {
                element.attribute(name).is_some_and(|value| relation.holds(value))
            }
        }
    }
}

impl Relation {
    /// An empty part is in no value (Selectors 6.2).
    fn holds(&self, value: &str) -> bool {
        match self {
            Self::Present => true,
            Self::Equal(whole) => *value == **whole,
            Self::Word(word) => value.split_ascii_whitespace().any(|own| *own == **word),
            Self::Start(start) => !start.is_empty() && value.starts_with(&**start),
            Self::End(end) => !end.is_empty() && value.ends_with(&**end),
            Self::Part(part) => !part.is_empty() && value.contains(&**part),
        }
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { selector, place, wrong } = self;
        let (before, after) = selector.split_at_checked(*place).unwrap_or((selector, ""));
        let column = before.chars().count() + 1;
        write!(to, "the selector {selector:?} is wrong at character {column}: {wrong}")?;
        match after.chars().next() {
            Some(found) => write!(to, ", not {found:?}"),
            None => to.write_str(", not its end"),
        }
    }
}

impl Error for SelectorError {}

/// A [`Selector`], or text that is one.
pub trait AsSelector {
    /// Hands the selector on.
    ///
    /// # Errors
    ///
    /// The text is none.
    fn with<T>(&self, then: impl FnOnce(&Selector) -> T) -> Result<T, SelectorError>;
}

impl AsSelector for Selector {
    fn with<T>(&self, then: impl FnOnce(&Selector) -> T) -> Result<T, SelectorError> {
        Ok(then(self))
    }
}

impl AsSelector for str {
    fn with<T>(&self, then: impl FnOnce(&Selector) -> T) -> Result<T, SelectorError> {
        Selector::parse(self).map(|selector| then(&selector))
    }
}

impl AsSelector for String {
    fn with<T>(&self, then: impl FnOnce(&Selector) -> T) -> Result<T, SelectorError> {
        self.as_str().with(then)
    }
}

#[cfg(test)]
mod tests;
