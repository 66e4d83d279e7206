//! Finds the applications of a site: each folder with an `index.tsx`, and the pages in it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use bine_log as log;

use super::app_settings::{AppSettings, SETTINGS_FILE};

/// Folders within each other.
const MAX_DEPTH: usize = 16;
/// Files and folders that one search looks at.
const MAX_ENTRIES: usize = 20_000;
/// Folders that are no part of an application's routes.
const OTHER_FOLDERS: [&str; 3] = ["public", "tests", "node_modules"];
/// The file that makes a folder an application.
pub(super) const INDEX: &str = "index.tsx";
/// The folder of an application whose files are served as they are.
pub(super) const PUBLIC: &str = "public";

/// An application as its folder shows it, before anything is loaded.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct AppFolder {
    /// The path from the root of the site, with `/` between its parts; empty for the root itself.
    pub(super) path: String,
    /// The folder.
    pub(super) folder: PathBuf,
    pub(super) settings: AppSettings,
    /// The files of pages, sorted by name.
    pub(super) files: Vec<PageFile>,
}

impl AppFolder {
    /// The path of the URL: empty, or with a slash at its start only.
    pub(super) fn url(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!("/{}", self.path) }
    }
}

/// A file with a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PageFile {
    /// The path in the application's folder, such as `rooms/[id].tsx`.
    pub(super) file: String,
    /// The path of the page below the application's URL, as a pattern: `/rooms/{id}`.
    pub(super) pattern: String,
    /// The nearest `_layout.tsx` in its folder or above it.
    pub(super) layout: Option<String>,
}

/// The applications of a site, in the order of their paths.
///
/// A folder with an `index.tsx` is an application with all folders below it. A folder in it with an
/// `app.toml` is a separate application. A folder outside of applications that cannot be read is
/// omitted, since a site may have files only.
///
/// # Errors
///
/// A message that names the file and the correction.
pub(super) fn find(root: &Path) -> Result<Vec<AppFolder>, String> {
    find_among(root, MAX_ENTRIES)
}

/// Finds applications among the first `most` files and folders.
fn find_among(root: &Path, most: usize) -> Result<Vec<AppFolder>, String> {
    let mut search = Search { left: most, is_cut: false, found: Vec::new() };
    search.folder(root, "", None, 0)?;
    let shown = root.display();
    if search.is_cut && !search.found.is_empty() {
        return Err(format!(
            "{shown} has more than {most} files and folders, so that not all applications in it were found: serve a smaller folder, or move files into the folder `public` of an application, which is not searched"
        ));
    }
    if search.is_cut {
        log::notice(format_args!(
            "{shown} has more than {most} files and folders: it is served without applications in TSX, of which the first ones have none"
        ));
    }
    search.found.sort_by(|one, other| one.path.cmp(&other.path));
    for app in &mut search.found {
        app.files.sort_by(|one, other| one.file.cmp(&other.file));
    }
    Ok(search.found)
}

struct Search {
    /// Entries that may still be looked at.
    left: usize,
    /// Whether there were more.
    is_cut: bool,
    found: Vec<AppFolder>,
}

/// The place of a folder in the application that it belongs to.
#[derive(Clone, Copy)]
struct FolderPlace<'w> {
    /// The position of the application.
    app: usize,
    /// The path in the application, empty or with `/` at its end.
    path: &'w str,
    layout: Option<&'w str>,
}

impl Search {
    fn folder(
        &mut self,
        folder: &Path,
        path: &str,
        within: Option<FolderPlace<'_>>,
        depth: usize,
    ) -> Result<(), String> {
        let shown = folder.display();
        if depth > MAX_DEPTH || self.is_cut {
            return match within {
                Some(_) if depth > MAX_DEPTH => {
                    Err(format!("{shown}: folders are nested more than {MAX_DEPTH} deep"))
                }
                _ => Ok(()),
            };
        }
        let FolderContent { files, folders } = match self.content(folder) {
            Ok(content) => content,
            Err(error) if within.is_none() && depth > 0 => {
                log::warn(format_args!("applications in {shown} are not found: {error}"));
                return Ok(());
            }
            Err(error) => return Err(format!("{shown}: {error}")),
        };
        let has = |name: &str| files.iter().any(|file| file == name);
        let begins = has(INDEX) && (within.is_none() || has(SETTINGS_FILE));
        let own_layout;
        let within = if begins {
            let settings = AppSettings::in_folder(folder)?;
            let (path, folder) = (path.to_owned(), folder.to_owned());
            self.found.push(AppFolder { path, folder, settings, files: Vec::new() });
            Some(FolderPlace { app: self.found.len() - 1, path: "", layout: None })
        } else {
            within
        };
        let within = match within {
            Some(within) if has("_layout.tsx") => {
                own_layout = format!("{}_layout.tsx", within.path);
                Some(FolderPlace { layout: Some(&own_layout), ..within })
            }
            other => other,
        };
        if let Some(within) = within {
            for name in &files {
                if let Some(page) = page_file(name, within) {
                    self.found[within.app].files.push(page);
                }
            }
        }
        for name in folders {
            if within.is_some() && (OTHER_FOLDERS.contains(&&*name) || name.starts_with('_')) {
                continue;
            }
            let below = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let own_path = within.map(|within| format!("{}{name}/", within.path));
            let inner = within.zip(own_path.as_deref());
            let inner = inner.map(|(within, path)| FolderPlace { path, ..within });
            self.folder(&folder.join(&name), &below, inner, depth + 1)?;
        }
        Ok(())
    }
}

impl Search {
    /// The names in a folder, without hidden ones.
    fn content(&mut self, folder: &Path) -> io::Result<FolderContent> {
        let mut content = FolderContent::default();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Some(left) = self.left.checked_sub(1) else {
                self.is_cut = true;
                break;
            };
            self.left = left;
            let Ok(name) = entry.file_name().into_string() else { continue };
            // A link may lead outside of the site, so it is no part of an application.
            let kind = entry.file_type()?;
            if name.starts_with('.') {
                continue;
            }
            if kind.is_dir() {
                content.folders.push(name);
            } else if kind.is_file() {
                content.files.push(name);
            }
        }
        content.folders.sort_unstable();
        Ok(content)
    }
}

/// The names in a folder.
#[derive(Default)]
struct FolderContent {
    files: Vec<String>,
    /// Sorted.
    folders: Vec<String>,
}

/// The page in a file of this name, if the name is one of a page.
fn page_file(name: &str, within: FolderPlace<'_>) -> Option<PageFile> {
    let stem = name.strip_suffix(".tsx").filter(|stem| !stem.starts_with('_'))?;
    let mut pattern = String::new();
    for segment in within.path.split_terminator('/').chain([stem]) {
        pattern.push('/');
        if segment == stem && stem == "index" {
            break;
        }
        pattern.push_str(&segment_pattern(segment)?);
    }
    Some(PageFile {
        file: format!("{}{name}", within.path),
        pattern,
        layout: within.layout.map(str::to_owned),
    })
}

/// The segment of a pattern for the name of a file or folder: `[id]` is a parameter, and `[...rest]`
/// takes all further segments. `None`: the name has other brackets or a character of patterns.
fn segment_pattern(name: &str) -> Option<String> {
    let Some(inner) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return (!name.contains(['[', ']', '{', '}'])).then(|| name.to_owned());
    };
    let (inner, dots) = match inner.strip_prefix("...") {
        Some(rest) => (rest, ".."),
        None => (inner, ""),
    };
    let is_name = inner.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| format!("{{{inner}{dots}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::testing::Folder;

    fn found(files: &[(&str, &str)]) -> Vec<(String, Vec<(String, String)>)> {
        let folder = Folder::with(files);
        let apps = find(folder.path()).unwrap();
        apps.into_iter()
            .map(|app| {
                let files = app.files.into_iter();
                (app.path, files.map(|page| (page.file, page.pattern)).collect())
            })
            .collect()
    }

    fn pages(pages: &[(&str, &str)]) -> Vec<(String, String)> {
        pages.iter().map(|(file, pattern)| ((*file).to_owned(), (*pattern).to_owned())).collect()
    }

    #[test]
    fn finds_each_folder_with_an_index() {
        let apps = found(&[
            ("readme.md", ""),
            ("board/index.tsx", ""),
            ("deep/er/shop/index.tsx", ""),
            ("plain/page.tsx", ""),
        ]);
        let expected = [
            ("board".to_owned(), pages(&[("index.tsx", "/")])),
            ("deep/er/shop".to_owned(), pages(&[("index.tsx", "/")])),
        ];
        assert_eq!(apps, expected);
    }

    #[test]
    fn routes_files_by_their_names() {
        let apps = found(&[
            ("index.tsx", ""),
            ("about.tsx", ""),
            ("_layout.tsx", ""),
            ("_parts/card.tsx", ""),
            ("data.ts", ""),
            ("public/x.tsx", ""),
            ("tests/board.test.tsx", ""),
            ("node_modules/a/index.tsx", ""),
            (".hidden/index.tsx", ""),
            ("rooms/[id].tsx", ""),
            ("rooms/index.tsx", ""),
            ("rooms/[id]/edit.tsx", ""),
            ("files/[...path].tsx", ""),
            ("odd{name}.tsx", ""),
            ("[two-words].tsx", ""),
        ]);
        let expected = pages(&[
            ("about.tsx", "/about"),
            ("files/[...path].tsx", "/files/{path..}"),
            ("index.tsx", "/"),
            ("rooms/[id].tsx", "/rooms/{id}"),
            ("rooms/[id]/edit.tsx", "/rooms/{id}/edit"),
            ("rooms/index.tsx", "/rooms/"),
        ]);
        assert_eq!(apps, [(String::new(), expected)]);
    }

    #[test]
    fn begins_an_application_within_another_at_its_settings() {
        let apps = found(&[
            ("index.tsx", ""),
            ("shop/index.tsx", ""),
            ("admin/index.tsx", ""),
            ("admin/app.toml", "title = \"Admin\""),
        ]);
        let expected = [
            (String::new(), pages(&[("index.tsx", "/"), ("shop/index.tsx", "/shop/")])),
            ("admin".to_owned(), pages(&[("index.tsx", "/")])),
        ];
        assert_eq!(apps, expected);
    }

    #[test]
    fn gives_each_page_the_nearest_layout() {
        let folder = Folder::with(&[
            ("index.tsx", ""),
            ("_layout.tsx", ""),
            ("a/b/page.tsx", ""),
            ("a/_layout.tsx", ""),
            ("c/page.tsx", ""),
        ]);
        let apps = find(folder.path()).unwrap();
        let layouts: Vec<_> = apps[0]
            .files
            .iter()
            .map(|page| (page.file.as_str(), page.layout.as_deref().unwrap()))
            .collect();
        let expected = [
            ("a/b/page.tsx", "a/_layout.tsx"),
            ("c/page.tsx", "_layout.tsx"),
            ("index.tsx", "_layout.tsx"),
        ];
        assert_eq!(layouts, expected);
    }

    #[test]
    fn serves_large_and_deep_sites_without_applications() {
        let deep = format!("{}page.html", "a/".repeat(40));
        let folder = Folder::with(&[(&deep, ""), ("b/1.html", ""), ("c/2.html", "")]);
        assert_eq!(find(folder.path()), Ok(Vec::new()));
        assert_eq!(find_among(folder.path(), 3), Ok(Vec::new()));
    }

    #[test]
    fn rejects_a_site_in_which_it_cannot_find_all_applications() {
        let folder = Folder::with(&[("a/index.tsx", ""), ("b/1.html", ""), ("c/index.tsx", "")]);
        assert_eq!(find(folder.path()).unwrap().len(), 2);
        let error = find_among(folder.path(), 5).unwrap_err();
        assert!(error.contains(" has more than 5 files and folders"), "{error}");
        let deep = format!("index.tsx,{}page.tsx", "a/".repeat(20));
        let (index, page) = deep.split_once(',').unwrap();
        let folder = Folder::with(&[(index, ""), (page, "")]);
        let error = find(folder.path()).unwrap_err();
        assert!(error.ends_with("folders are nested more than 16 deep"), "{error}");
    }

    #[test]
    fn names_the_folder_that_it_cannot_read() {
        let error = find(Path::new("/no/such/folder")).unwrap_err();
        assert!(error.starts_with("/no/such/folder: "), "{error}");
    }
}
