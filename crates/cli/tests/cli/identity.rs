//! Tests of the user that the program runs as.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::harness::{Folder, KINDS, Program};
use crate::{bine, run};

#[test]
fn switches_to_configured_user() {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        let ended = run(&["--listen", "127.0.0.1:0", "--user", "65534:65534"]);
        let message = "bine: cannot become that user: Operation not permitted (os error 1)\n";
        assert_eq!((ended.code, ended.errors.as_str()), (Some(1), message));
        return;
    }
    for scheduler in KINDS {
        let folder = Folder::new();
        let log = folder.join("access.log");
        let log_option = log.to_str().unwrap();
        let options =
            ["--scheduler", scheduler, "--user", "65534:65533", "--access-log", log_option];
        let mut command = bine(&[&["--listen", "127.0.0.1:0"], &options[..]].concat());
        // The warning starts the thread of the log before the switch.
        let program = Program::start(command.env("BINE_LISTENS", "x"));
        assert_eq!(program.connect().get("/").status(), 200);
        let threads = fs::read_dir(format!("/proc/{}/task", program.id())).unwrap();
        for thread in threads {
            // A thread that has exited has no status.
            let status = thread.unwrap().path().join("status");
            let Ok(status) = fs::read_to_string(status) else { continue };
            let line = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
            };
            // Real, effective, saved and file system id: all have changed.
            assert_eq!(line("Uid:"), "65534 65534 65534 65534", "{status}");
            assert_eq!(line("Gid:"), "65533 65533 65533 65533", "{status}");
            assert_eq!(line("Groups:"), "65533", "{status}");
            assert_eq!(line("CapEff:"), "0000000000000000", "{status}");
        }
        assert_eq!(program.stop().code, Some(0));
        // The log was opened before the switch.
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 1);
    }
}
