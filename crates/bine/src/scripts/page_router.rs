//! Finds the page of a path within an application.

use super::folders::AppFolder;
use super::interned::interned;
use crate::pattern::{PathPattern, Segment};
use crate::router::Router;

/// The pages of an application by their paths.
#[derive(Debug)]
pub(super) struct PageRouter {
    router: Router,
    patterns: Vec<PathPattern>,
}

impl PageRouter {
    /// # Errors
    ///
    /// Two pages have the same paths.
    pub(super) fn new(app: &AppFolder) -> Result<Self, String> {
        let patterns = app.files.iter().map(|page| {
            PathPattern::new(interned(&page.pattern))
                .map_err(|reason| format!("{}: {reason}", app.folder.join(&page.file).display()))
        });
        let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
        let router = Router::new(&patterns).map_err(|[one, other]| {
            let [one, other] = [one, other].map(|place| &app.files[place].file);
            format!(
                "{}: the pages {one} and {other} would answer the same paths; rename one of them",
                app.folder.display()
            )
        })?;
        Ok(Self { router, patterns })
    }

    /// The position of the page at a path below the application, which begins with `/`.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        self.router.find(path)
    }

    /// The parameters of a page in a matching path, in their order.
    pub(super) fn parameters<'p>(
        &self,
        page: usize,
        path: &'p str,
    ) -> impl Iterator<Item = (&'static str, &'p str)> {
        let pattern = &self.patterns[page];
        pattern.segments().iter().filter_map(move |segment| match segment {
            Segment::Parameter(name) | Segment::Rest(name) => {
                Some((*name, pattern.find(path, name)?))
            }
            Segment::Literal(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::folders::find;
    use crate::scripts::testing::Folder;

    #[test]
    fn finds_pages_and_their_parameters() {
        let folder = Folder::with(&[
            ("index.tsx", ""),
            ("rooms/[id].tsx", ""),
            ("rooms/new.tsx", ""),
            ("files/[...path].tsx", ""),
        ]);
        let apps = find(folder.path()).unwrap();
        let router = PageRouter::new(&apps[0]).unwrap();
        let found = |path: &str| {
            let page = router.find(path)?;
            let parameters = router.parameters(page, path);
            let parameters: Vec<_> =
                parameters.map(|(name, value)| format!("{name}={value}")).collect();
            Some((apps[0].files[page].file.clone(), parameters))
        };
        let expected = |file: &str, parameters: &[&str]| {
            Some((file.to_owned(), parameters.iter().map(ToString::to_string).collect()))
        };
        assert_eq!(found("/"), expected("index.tsx", &[]));
        assert_eq!(found("/rooms/new"), expected("rooms/new.tsx", &[]));
        assert_eq!(found("/rooms/7"), expected("rooms/[id].tsx", &["id=7"]));
        assert_eq!(found("/files/a/b"), expected("files/[...path].tsx", &["path=a/b"]));
        assert_eq!(found("/rooms/"), None);
        assert_eq!(found("/other"), None);
    }

    #[test]
    fn names_two_pages_with_the_same_paths() {
        let folder = Folder::with(&[("index.tsx", ""), ("[a].tsx", ""), ("[b].tsx", "")]);
        let apps = find(folder.path()).unwrap();
        let error = PageRouter::new(&apps[0]).unwrap_err();
        assert!(
            error.ends_with(
                "the pages [a].tsx and [b].tsx would answer the same paths; rename one of them"
            ),
            "{error}"
        );
    }
}
