//! Files of the repository that the guide refers to: their text, and their addresses.

/// A file, with its path in the repository.
pub(crate) struct Source {
    pub(crate) path: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! sources {
    ($($path:literal,)+) => {
        /// All files. The program's image has them; memory has those that somebody opens.
        pub(crate) static SOURCES: [Source; [$($path),+].len()] = [$(Source {
            path: $path,
            text: include_str!(concat!("../../../../", $path)),
        },)+];
    };
}

sources! {
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "bench/README.md",
    "crates/cli/src/demo/board.rs",
    "docs/decisions/0007-what-http-refuses.md",
    "docs/decisions/README.md",
    "docs/formats/README.md",
    "docs/formats/backup.md",
    "docs/formats/calls.md",
    "docs/formats/channels.md",
    "docs/formats/journal.md",
    "docs/formats/lines.md",
    "docs/formats/rows.md",
    "docs/formats/sealed.md",
    "docs/formats/session.md",
    "docs/formats/ticket.md",
    "docs/measurements/builds.md",
    "docs/measurements/overload.md",
    "docs/measurements/schedulers.md",
    "docs/measurements/tls.md",
    "docs/papers.md",
    "examples/accounts.rs",
    "examples/actions.rs",
    "examples/balancer.rs",
    "examples/board.rs",
    "examples/channels.rs",
    "examples/devices.rs",
    "examples/filter.rs",
    "examples/hello.rs",
    "examples/histories.rs",
    "examples/home.rs",
    "examples/house.rs",
    "examples/middleware.rs",
    "examples/notes.rs",
    "examples/plain.rs",
    "examples/rooms.rs",
    "examples/scheduler.rs",
    "examples/services.rs",
    "examples/session.rs",
    "examples/socket.rs",
    "examples/stream.rs",
    "examples/style.rs",
    "examples/times.rs",
    "examples/tokens.rs",
    "examples/uploads.rs",
    "examples/values.rs",
    "examples/wall.rs",
    "packaging/bine.service",
    "packaging/bine.socket",
    "xtask/test-tools/console_browser.py",
    "xtask/test-tools/inert_browser.py",
}

/// The repository, for files that the demo does not have.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The folder of the guide.
pub(crate) const GUIDE: &str = "docs/guide";

/// Returns the file at this path.
pub(crate) fn source_at(path: &str) -> Option<&'static Source> {
    SOURCES.iter().find(|source| source.path == path)
}

impl Source {
    /// The end of the file's name.
    pub(crate) fn extension(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    /// The folder of the file.
    pub(crate) fn folder(&self) -> &'static str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// Returns the address of what a file in `folder` links to: a page of the demo if it has one, or
/// the file in the repository.
pub(crate) fn link_target(folder: &str, link: &str) -> String {
    if link.contains("://") || link.starts_with('#') {
        return link.to_owned();
    }
    let (file, fragment) = link.split_at(link.find('#').unwrap_or(link.len()));
    let path = join(folder, file);
    let page = if path == "examples" {
        "/source".to_owned()
    } else if source_at(&path).is_some() {
        format!("/source/{path}")
    } else if let Some(chapter) =
        path.strip_prefix("docs/guide/").and_then(|name| name.strip_suffix(".md"))
    {
        if chapter == "README" { "/guide".to_owned() } else { format!("/guide/{chapter}") }
    } else {
        // The forge redirects from a file's address to a folder's.
        format!("{REPOSITORY}/blob/main/{path}")
    };
    page + fragment
}

/// Joins a folder and a relative path of the repository.
fn join(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "" | "." => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn links_to_pages_of_the_demo_or_to_the_repository() {
        for (link, target) in [
            ("pages.md", "/guide/pages"),
            ("markup.md#components", "/guide/markup#components"),
            ("README.md", "/guide"),
            ("../../examples/hello.rs", "/source/examples/hello.rs"),
            ("../../examples", "/source"),
            ("../papers.md#serrano-2009", "/source/docs/papers.md#serrano-2009"),
            ("https://example.org/pages.md", "https://example.org/pages.md"),
            ("#here", "#here"),
        ] {
            assert_eq!(link_target(GUIDE, link), target);
        }
        let other = link_target("", "crates/html/src/lib.rs");
        assert_eq!(other, format!("{REPOSITORY}/blob/main/crates/html/src/lib.rs"));
    }

    #[test]
    fn has_every_single_file_of_the_examples() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(source_at(&format!("examples/{name}")).is_some(), "{name}");
            }
        }
    }
}
