//! Visits all files below a root, within bounds.

use std::fs::File;
use std::io;

use rustix::fs::Dir;

use crate::name;
use crate::root::{Failure, Found, Root};

/// The bounds of one [walk](Root::walk). A link to a folder above itself would otherwise have no
/// end.
const MAX_ENTRIES: usize = 10_000;
const MAX_BYTES: u64 = 1 << 30;
const MAX_DEPTH: usize = 32;

impl Root {
    /// Calls `visit` with each file that is not hidden: with its path, which begins with `/`, and
    /// the open file. The order is by name, a folder's files before those of its folders. Files
    /// outside the root are not visited, regardless of links.
    ///
    /// # Errors
    ///
    /// A folder cannot be read, `visit` fails, or there are more than 10 000 files and folders,
    /// 1 GiB, or 32 folders inside each other.
    pub fn walk(&self, visit: &mut dyn FnMut(&str, File) -> io::Result<()>) -> io::Result<()> {
        let mut rest = vec![String::from("/")];
        let (mut entries, mut bytes) = (0, 0);
        while let Some(folder) = rest.pop() {
            if folder.matches('/').count() > MAX_DEPTH {
                return Err(too_much(&format!("{MAX_DEPTH} folders inside each other")));
            }
            let mut names = self.names(&folder[1..])?;
            names.sort_unstable();
            let mut folders = Vec::new();
            for name in names {
                let path = [&*folder, &name].concat();
                // Folders count too: links may give one folder many names.
                entries += 1;
                match self.lookup(&path[1..]) {
                    Ok(Found::File(file, metadata, _)) => {
                        bytes += metadata.len();
                        if bytes > MAX_BYTES {
                            return Err(too_much("1 GiB"));
                        }
                        visit(&path, file)?;
                    }
                    Ok(Found::Directory) => folders.push(path + "/"),
                    // A link out of the root, or a file that has just been removed.
                    Ok(Found::Unindexed) | Err(Failure::NotFound) => {}
                    Err(Failure::System(error)) => return Err(error),
                }
                if entries > MAX_ENTRIES {
                    return Err(too_much(&format!("{MAX_ENTRIES} files and folders")));
                }
            }
            rest.extend(folders.into_iter().rev());
        }
        Ok(())
    }

    /// The names in a folder that have a path of their own. Its name is empty or ends with a slash.
    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let directory = self.directory(folder)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&directory)? {
            // A name that is not UTF-8 has no URL here.
            if let Ok(name) = entry?.file_name().to_str()
                && name::resolve(&format!("/_/{name}"), false).is_some()
            {
                names.push(name.to_owned());
            }
            if names.len() > MAX_ENTRIES {
                return Err(too_much(&format!("{MAX_ENTRIES} files and folders")));
            }
        }
        Ok(names)
    }
}

fn too_much(what: &str) -> io::Error {
    io::Error::other(format!("the folder has more than {what}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use super::*;

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("bine-walk-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("root/a/b")).expect("a folder");
            Self(path)
        }

        fn root(&self) -> PathBuf {
            self.0.join("root")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    fn visited(root: &Path) -> io::Result<Vec<String>> {
        let mut paths = Vec::new();
        Root::open(root)?.walk(&mut |path, _| {
            paths.push(path.to_owned());
            Ok(())
        })?;
        Ok(paths)
    }

    #[test]
    fn visits_files_below_the_root_and_no_other() {
        let folder = Folder::new("below");
        fs::write(folder.0.join("secret"), "").expect("a file");
        let root = folder.root();
        for name in ["z", "c", "a/x", "a/b/y", "a/.hidden", ".git"] {
            fs::write(root.join(name), name).expect("a file");
        }
        symlink("../secret", root.join("out")).expect("a link");
        symlink("../..", root.join("a/far")).expect("a link");
        symlink("a/x", root.join("in")).expect("a link");
        assert_eq!(visited(&root).expect("a walk"), ["/c", "/in", "/z", "/a/x", "/a/b/y"]);
    }

    #[test]
    fn ends_at_links_to_a_folder_above() {
        let folder = Folder::new("loop");
        symlink("..", folder.root().join("a/up")).expect("a link");
        let error = visited(&folder.root()).expect_err("it has no end");
        assert!(error.to_string().contains("32 folders inside each other"), "{error}");
    }

    #[test]
    fn visits_32_folders_inside_each_other_and_no_more() {
        let folder = Folder::new("deep");
        let mut path = folder.root();
        for _ in 1..32 {
            path.push("d");
        }
        fs::create_dir_all(&path).expect("folders");
        fs::write(path.join("last"), "").expect("a file");
        assert_eq!(visited(&folder.root()).expect("a walk"), [format!("{}/last", "/d".repeat(31))]);
        fs::create_dir(path.join("d")).expect("a folder");
        let error = visited(&folder.root()).expect_err("it is too deep");
        assert!(error.to_string().contains("32 folders inside each other"), "{error}");
    }

    #[test]
    fn visits_files_of_one_gibibyte_together_and_no_more() {
        let folder = Folder::new("large");
        let (half, root) = (1 << 29, folder.root());
        let sparse = |name: &str, length| {
            let file = File::create(root.join(name)).expect("a file");
            file.set_len(length).expect("a sparse file takes no space");
        };
        sparse("1", half);
        sparse("2", half);
        assert_eq!(visited(&root).expect("a walk"), ["/1", "/2"]);
        sparse("a/3", 1);
        let error = visited(&root).expect_err("it is too large");
        assert!(error.to_string().contains("1 GiB"), "{error}");
    }

    #[test]
    fn visits_10000_names_and_no_more() {
        let folder = Folder::new("many");
        let root = folder.root();
        // Together with the folders `a` and `a/b`.
        for number in 2..MAX_ENTRIES {
            File::create(root.join(format!("a/b/{number}"))).expect("a file");
        }
        assert_eq!(visited(&root).expect("a walk").len(), 9998);
        File::create(root.join("one more")).expect("a file");
        let error = visited(&root).expect_err("there are too many");
        assert!(error.to_string().contains("10000 files and folders"), "{error}");
        // One folder alone.
        let opened = Root::open(&root).expect("it is there");
        for name in ["10000", "10001"] {
            File::create(root.join("a/b").join(name)).expect("a file");
        }
        assert_eq!(opened.names("a/b/").expect("not too many").len(), 10_000);
        File::create(root.join("a/b/one more")).expect("a file");
        let error = opened.names("a/b/").expect_err("there are too many");
        assert!(error.to_string().contains("10000 files and folders"), "{error}");
    }

    #[test]
    fn links_do_not_multiply_the_folders() {
        let folder = Folder::new("tree");
        // Each level has two names for the next one: 2 to the power of 16 paths.
        let mut path = folder.root();
        for _ in 0..16 {
            path.push("next");
            fs::create_dir(&path).expect("a folder");
            symlink("next", path.with_file_name("also")).expect("a link");
        }
        let error = visited(&folder.root()).expect_err("there are too many");
        assert!(error.to_string().contains("10000 files and folders"), "{error}");
    }
}
