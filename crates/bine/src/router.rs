//! The router: finds the pattern that a path matches. Patterns are compiled once; a lookup does not
//! allocate.

use crate::pattern::{PathPattern, Segment};

/// All patterns of a program, each with a number.
///
/// One binary search finds a path without parameters. Further paths are matched segment by segment
/// from the start, where a literal takes precedence over a parameter, and a parameter over a rest.
#[derive(Debug, Default)]
pub(crate) struct Router {
    /// Sorted by path.
    literals: Box<[(&'static str, usize)]>,
    /// The root of all patterns with parameters is `nodes[0]`.
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// Sorted by text.
    literals: Vec<(&'static str, usize)>,
    parameter: Option<usize>,
    /// The pattern whose rest starts here.
    rest: Option<usize>,
    /// The pattern that ends here.
    end: Option<usize>,
}

impl Router {
    /// Builds a router over patterns; a lookup returns the index of the pattern.
    ///
    /// # Errors
    ///
    /// Returns the indexes of two patterns that match the same paths.
    pub(crate) fn new<'p>(
        patterns: impl IntoIterator<Item = &'p PathPattern>,
    ) -> Result<Self, [usize; 2]> {
        let mut router = Self { literals: Box::default(), nodes: vec![Node::default()] };
        let mut literals = Vec::new();
        for (number, pattern) in patterns.into_iter().enumerate() {
            match pattern.literal() {
                Some(path) => literals.push((path, number)),
                None => router.add(pattern, number)?,
            }
        }
        literals.sort_unstable();
        for pair in literals.windows(2) {
            if pair[0].0 == pair[1].0 {
                return Err([pair[0].1, pair[1].1]);
            }
        }
        router.literals = literals.into();
        Ok(router)
    }

    fn add(&mut self, pattern: &PathPattern, number: usize) -> Result<(), [usize; 2]> {
        let mut at = 0;
        for segment in pattern.segments() {
            let next = self.nodes.len();
            let node = &mut self.nodes[at];
            at = match segment {
                Segment::Literal(text) => {
                    match node.literals.binary_search_by_key(text, |literal| literal.0) {
                        Ok(place) => node.literals[place].1,
                        Err(place) => {
                            node.literals.insert(place, (text, next));
                            next
                        }
                    }
                }
                Segment::Parameter(_) => *node.parameter.get_or_insert(next),
                Segment::Rest(_) => {
                    return match node.rest.replace(number) {
                        None => Ok(()),
                        Some(other) => Err([other, number]),
                    };
                }
            };
            if at == next {
                self.nodes.push(Node::default());
            }
        }
        match self.nodes[at].end.replace(number) {
            None => Ok(()),
            Some(other) => Err([other, number]),
        }
    }

    /// The number of the pattern that `path` matches.
    #[inline]
    pub(crate) fn find(&self, path: &str) -> Option<usize> {
        if let Ok(place) = self.literals.binary_search_by(|literal| literal.0.cmp(path)) {
            return Some(self.literals[place].1);
        }
        self.nodes.first()?.find(&self.nodes, Some(path.strip_prefix('/')?))
    }
}

impl Node {
    /// Matches the rest of a path; `None` is past its end. The recursion is no deeper than the
    /// longest pattern.
    fn find(&self, nodes: &[Self], left: Option<&str>) -> Option<usize> {
        let Some(left) = left else { return self.end };
        let (segment, behind) = match left.split_once('/') {
            Some((segment, behind)) => (segment, Some(behind)),
            None => (left, None),
        };
        let literal = self.literals.binary_search_by(|literal| literal.0.cmp(segment));
        let by_literal =
            || literal.ok().and_then(|place| nodes[self.literals[place].1].find(nodes, behind));
        // A parameter is never empty: `/forum/` does not match `/forum/{name}`.
        let by_parameter = || {
            let node = self.parameter.filter(|_| !segment.is_empty())?;
            nodes[node].find(nodes, behind)
        };
        by_literal().or_else(by_parameter).or(self.rest.filter(|_| !left.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::Router;
    use crate::pattern::{PathPattern, Segment};

    fn router(sources: &[&'static str]) -> Router {
        let patterns: Vec<_> =
            sources.iter().map(|source| PathPattern::new(source).unwrap()).collect();
        Router::new(&patterns).unwrap()
    }

    #[test]
    fn prefers_literals_to_parameters_to_rests() {
        let sources = ["/a/b", "/a/{x}", "/{x}/b", "/{x..}", "/a/{x}/c", "/"];
        let router = router(&sources);
        for (path, expected) in [
            ("/a/b", "/a/b"),
            ("/a/c", "/a/{x}"),
            ("/c/b", "/{x}/b"),
            ("/c/c", "/{x..}"),
            ("/a/b/c", "/a/{x}/c"),
            ("/a/b/d", "/{x..}"),
            ("/a/", "/{x..}"),
            ("/", "/"),
        ] {
            assert_eq!(router.find(path).map(|found| sources[found]), Some(expected), "{path}");
        }
    }

    #[test]
    fn finds_no_pattern_for_other_paths() {
        let router = router(&["/a/{x}", "/b/{x..}"]);
        for path in ["/", "/a", "/a/", "/a/b/c", "/b", "/b/", "*", ""] {
            assert_eq!(router.find(path), None, "{path:?}");
        }
    }

    #[test]
    fn rejects_two_patterns_for_the_same_paths() {
        for (one, other) in [("/a", "/a"), ("/{a}", "/{b}"), ("/{a..}", "/{b..}")] {
            let patterns = [one, "/x", other].map(|source| PathPattern::new(source).unwrap());
            assert_eq!(Router::new(&patterns).unwrap_err(), [0, 2]);
        }
    }

    /// The reference implementation: the first matching pattern in the order of precedence.
    fn plainly(patterns: &[PathPattern], path: &str) -> Option<usize> {
        let path = path.strip_prefix('/')?;
        let matching = |pattern: &PathPattern| {
            let mut left = Some(path);
            for segment in pattern.segments() {
                let text = left?;
                let (first, behind) =
                    text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
                left = match segment {
                    Segment::Literal(literal) if *literal == first => behind,
                    Segment::Parameter(_) if !first.is_empty() => behind,
                    Segment::Rest(_) if !text.is_empty() => None,
                    _ => return None,
                };
            }
            left.is_none().then_some(())
        };
        let rank = |pattern: &PathPattern| -> Vec<u8> {
            let rank = |segment: &Segment| match segment {
                Segment::Literal(_) => 0,
                Segment::Parameter(_) => 1,
                Segment::Rest(_) => 2,
            };
            pattern.segments().iter().map(rank).collect()
        };
        let found = (0..patterns.len()).filter(|&place| matching(&patterns[place]).is_some());
        found.min_by_key(|&place| rank(&patterns[place]))
    }

    #[test]
    fn agrees_with_a_linear_search() {
        const SOURCES: [&str; 12] = [
            "/",
            "/a",
            "/a/b",
            "/a/{x}",
            "/{x}",
            "/{x}/b",
            "/{x}/{y}",
            "/a/{x..}",
            "/{x}/b/{y..}",
            "/a/b/c",
            "/{x}/{y}/c",
            "/b/",
        ];
        // Tests subsets of the patterns over each path of up to four short segments.
        let mut paths = vec![String::new()];
        for length in 0..4 {
            let longer: Vec<_> = paths
                .iter()
                .filter(|path| path.matches('/').count() == length)
                .flat_map(|path| ["", "a", "b", "c"].map(|segment| format!("{path}/{segment}")))
                .collect();
            paths.extend(longer);
        }
        for subset in (0..1_u32 << SOURCES.len()).step_by(37) {
            let chosen = (0..SOURCES.len()).filter(|place| subset >> place & 1 == 1);
            let patterns: Vec<_> =
                chosen.map(|place| PathPattern::new(SOURCES[place]).unwrap()).collect();
            let router = Router::new(&patterns).unwrap();
            for path in &paths {
                assert_eq!(router.find(path), plainly(&patterns, path), "{path} in {patterns:?}");
            }
        }
    }
}
