//! A folder of applications.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bine::App;
use bine::test::Site;

/// A folder that is removed when it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bine-script-tests-{}-{number}", std::process::id());
        let own = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&own.0).unwrap();
        for (file, content) in files {
            own.write(file, content);
        }
        own
    }

    /// The files of a chapter of the guide, and their names: each block with the name of a file, such as
    /// `tsx index.tsx`.
    pub(crate) fn of_chapter(name: &str) -> (Self, Vec<String>) {
        let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
        let chapter = fs::read_to_string(guide.join(name)).unwrap();
        let (folder, mut names) = (Self::with(&[]), Vec::new());
        for block in chapter.split("\n```").skip(1).step_by(2) {
            let (kind, text) = block.split_once('\n').unwrap();
            if let Some((_, file)) = kind.split_once(' ').filter(|(_, file)| file.contains('.')) {
                assert!(!names.iter().any(|known| known == file), "{name} has two files {file}");
                names.push(file.to_owned());
                folder.write(file, &format!("{text}\n"));
            }
        }
        assert!(!names.is_empty(), "{name} has no files");
        (folder, names)
    }

    /// Writes a file by a rename, as editors do, so that a server never reads a part of it.
    pub(crate) fn write(&self, file: &str, content: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let partial = path.with_extension("partial");
        fs::write(&partial, content).unwrap();
        fs::rename(partial, path).unwrap();
    }

    /// A server with the applications of the folder.
    pub(crate) fn site(&self) -> Site {
        Site::new(self.app())
    }

    pub(crate) fn app(&self) -> App {
        App::new().scripts(&self.0)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
