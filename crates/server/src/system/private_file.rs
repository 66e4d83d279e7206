//! Atomic replacement of files that contain secrets and that only their owner may read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Replaces the file at `path` with one that contains `bytes` and that only its owner may read
/// (mode 0600).
///
/// The replacement is atomic and durable. A crash or power failure leaves the old file or the new
/// one; after this function returns, it leaves the new one. The function syncs the bytes before the
/// rename, and the folder after it.
///
/// # Errors
///
/// Returns the system's error. The file at `path` is then the old one, except when the sync of the
/// folder failed: then it may be either.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    // A file from before a crash may have a different mode.
    remove_if_exists(&temporary)?;
    let written = write_synced(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // On a full disk the partial file would take space that other files need.
        let _ = remove_if_exists(&temporary);
    }
    written?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Whether an error means that the disk is full or a quota exceeded, which may pass.
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::process::Command;

    use super::*;
    use bine_log::test_support::ScratchFolder;

    /// The environment variable that passes the folder to the process under strace.
    const PATH_VARIABLE: &str = "BINE_PRIVATE_FILE";

    #[test]
    fn replaces_a_file_readable_only_by_its_owner() {
        let folder = ScratchFolder::new();
        let path = folder.path("keys");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        // The rest of an interrupted replacement, which must not be reused.
        fs::write(folder.path("keys.new"), "half").unwrap();
        write_private(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(!folder.path("keys.new").exists());
    }

    #[test]
    fn leaves_the_old_file_when_the_disk_is_full() {
        let name = "system::private_file::tests::leaves_the_old_file_when_the_disk_is_full";
        let Some(disk) = ScratchFolder::small_disk(name) else { return };
        let path = disk.path("keys");
        write_private(&path, b"old").unwrap();
        let error = write_private(&path, &vec![7; 64 * 1024]).expect_err("it has no room");
        assert!(is_disk_full(&error), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert!(!disk.path("keys.new").exists());
    }

    #[test]
    fn syncs_the_file_before_the_rename_and_the_folder_after() {
        if let Some(folder_path) = std::env::var_os(PATH_VARIABLE) {
            write_private(&Path::new(&folder_path).join("keys"), b"new").unwrap();
            return;
        }
        let folder = ScratchFolder::new();
        let folder_path = folder.path("");
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-e", "trace=write,fsync,fdatasync,/^rename"]);
        command.arg(std::env::current_exe().unwrap());
        let name =
            "system::private_file::tests::syncs_the_file_before_the_rename_and_the_folder_after";
        command.args(["--exact", name]).env(PATH_VARIABLE, &folder_path);
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => return println!("skipped: strace cannot be started: {error}"),
        };
        let trace = String::from_utf8_lossy(&output.stderr);
        if trace.contains("PTRACE_TRACEME") || trace.contains("ptrace(") {
            return println!("skipped: strace may not watch: {trace}");
        }
        let path = folder_path.display().to_string();
        let path = path.trim_end_matches('/');
        let matching = trace.lines().filter(|line| line.contains(path));
        let calls: Vec<&str> = matching
            .map(|line| match line {
                line if line.contains("rename") => "rename",
                line if line.contains("write(") => "write",
                line if line.contains("keys") => "sync the file",
                _ => "sync the folder",
            })
            .collect();
        assert_eq!(calls, ["write", "sync the file", "rename", "sync the folder"], "{trace}");
    }

    #[test]
    fn reports_a_file_that_cannot_be_removed() {
        let folder = ScratchFolder::new();
        assert!(remove_if_exists(&folder.path("missing")).is_ok());
        assert!(remove_if_exists(&folder.path("")).is_err(), "it is a folder");
        fs::write(folder.path("file"), "x").unwrap();
        assert!(remove_if_exists(&folder.path("file")).is_ok());
        assert!(!folder.path("file").exists());
    }
}
