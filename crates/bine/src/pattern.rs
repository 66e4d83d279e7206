//! Path patterns such as `/forum/{id}`, and the values of their parameters.

use std::fmt;

/// A path with parameters: `{name}` matches one segment, `{name..}` at the end matches the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PathPattern {
    source: &'static str,
    segments: Box<[Segment]>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Segment {
    Literal(&'static str),
    Parameter(&'static str),
    Rest(&'static str),
}

impl PathPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// Returns the reason why the pattern is invalid.
    pub(crate) fn new(source: &'static str) -> Result<Self, String> {
        let Some(path) = source.strip_prefix('/') else {
            return Err(format!("the path {source:?} does not begin with `/`"));
        };
        let segments: Box<[Segment]> = path.split('/').map(segment).collect();
        let wrong = |reason: &str| Err(format!("the path {source:?} {reason}"));
        for (place, segment) in segments.iter().enumerate() {
            let is_last = place + 1 == segments.len();
            match segment {
                Segment::Literal(text) if text.contains(['{', '}']) => {
                    return wrong("has a brace outside a parameter: `/{name}` is a whole segment");
                }
                Segment::Rest(_) if !is_last => return wrong("continues after `{..}`"),
                Segment::Parameter(name) | Segment::Rest(name) => {
                    let repeated =
                        segments[..place].iter().any(|other| other.name() == Some(*name));
                    if repeated || name.is_empty() {
                        return wrong("has a parameter without a unique name");
                    }
                }
                Segment::Literal(_) => {}
            }
        }
        Ok(Self { source, segments })
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The path itself, if it has no parameter.
    pub(crate) fn literal(&self) -> Option<&'static str> {
        self.segments.iter().all(|segment| segment.name().is_none()).then_some(self.source)
    }

    /// The value of a parameter in a matching path.
    pub(crate) fn find<'p>(&self, path: &'p str, name: &str) -> Option<&'p str> {
        let place = self.segments.iter().position(|segment| segment.name() == Some(name))?;
        let mut rest = path.strip_prefix('/')?;
        for _ in 0..place {
            rest = rest.split_once('/')?.1;
        }
        Some(match self.segments[place] {
            Segment::Rest(_) => rest,
            _ => rest.split('/').next().unwrap_or(rest),
        })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source)
    }
}

impl Segment {
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Literal(_) => None,
            Self::Parameter(name) | Self::Rest(name) => Some(name),
        }
    }
}

fn segment(text: &'static str) -> Segment {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    match inner {
        None => Segment::Literal(text),
        Some(name) => match name.strip_suffix("..") {
            Some(name) => Segment::Rest(name),
            None => Segment::Parameter(name),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::PathPattern;

    #[track_caller]
    fn find(pattern: &'static str, path: &str, name: &str) -> String {
        let pattern = PathPattern::new(pattern).unwrap();
        pattern.find(path, name).unwrap_or("nothing").to_owned()
    }

    #[test]
    fn parameters_match_one_segment_and_rests_match_several() {
        assert_eq!(find("/forum/{id}", "/forum/7", "id"), "7");
        assert_eq!(find("/{a}/x/{b}", "/1/x/2", "a"), "1");
        assert_eq!(find("/{a}/x/{b}", "/1/x/2", "b"), "2");
        assert_eq!(find("/files/{path..}", "/files/a/b.c", "path"), "a/b.c");
        assert_eq!(find("/{a}", "/1", "b"), "nothing");
    }

    #[test]
    fn names_the_fault_of_an_invalid_pattern() {
        for (source, expected) in [
            ("forum", "does not begin with `/`"),
            ("/a{b}", "a brace outside a parameter"),
            ("/{a..}/b", "continues after"),
            ("/{a}/{a}", "a unique name"),
            ("/{}", "a unique name"),
        ] {
            let error = PathPattern::new(source).unwrap_err();
            assert!(error.contains(expected), "{source}: {error}");
        }
    }
}
