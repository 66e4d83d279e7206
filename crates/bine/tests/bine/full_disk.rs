//! A server on a full disk restarts, serves reads, reports that it refuses changes, and accepts
//! them again once there is space.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::app::program;
use crate::harness::{Folder, PATIENCE, Program};

/// Size of the disk in bytes.
const SIZE: usize = 1 << 20;
/// Free space for the server, in bytes.
const LEFT: usize = 36 << 10;
/// Environment variable with the disk's path, for the process with its own mounts.
const DISK: &str = "BINE_FULL_DISK";

#[test]
fn restarts_on_full_disk_and_writes_again_once_space_is_free() {
    let Some(disk) = disk("full_disk::restarts_on_full_disk_and_writes_again_once_space_is_free")
    else {
        return;
    };
    let (ballast, rest, data) = (disk.join("ballast"), disk.join("rest"), disk.join("data"));
    fs::write(&ballast, vec![1; SIZE - LEFT]).unwrap();
    let start = || {
        let options = ["--data", data.to_str().unwrap()];
        Program::start(&mut program("kept::serve_table_program", &options))
    };

    let server = start();
    let mut kept = vec!["first".to_owned()];
    loop {
        let name = format!("n{}", kept.len());
        match post(&server, &name) {
            200 => kept.push(name),
            status => break assert_eq!(status, 507),
        }
    }
    assert!(kept.len() > 50, "{}", kept.len());
    for _ in 0..20 {
        assert_eq!(post(&server, "again"), 507);
    }
    assert_eq!(get(&server, "/names"), (200, kept.join(" ")));
    assert_eq!(get(&server, "/ready"), (200, "read-only: the disk is full\n".to_owned()));
    let ended = server.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let told: Vec<&str> =
        ended.errors.lines().filter(|line| line.contains("answered 507")).collect();
    // Twenty-one changes were refused at once; a slow machine may need some seconds for them.
    assert!(!told.is_empty() && told.len() < 10, "{}", ended.errors);
    assert!(
        told[0].ends_with("answered 507: the disk is full: nothing was written"),
        "{}",
        told[0]
    );

    // A second process fills the disk before the restart.
    let mut file = fs::File::create(&rest).unwrap();
    while file.write(&[1; 512]).is_ok_and(|written| written > 0) {}
    drop(file);
    let server = start();
    assert_eq!(get(&server, "/ready"), (200, "read-only: the disk is full\n".to_owned()));
    assert_eq!(get(&server, "/names"), (200, kept.join(" ")));
    assert_eq!(post(&server, "again"), 507);

    fs::remove_file(&ballast).unwrap();
    let begun = Instant::now();
    while get(&server, "/ready").1 != "ready\n" {
        assert!(begun.elapsed() < PATIENCE, "the server does not notice the free space");
    }
    assert_eq!(post(&server, "last"), 200);
    kept.push("last".to_owned());
    let errors = server.stop().errors;
    assert!(errors.contains("the disk of the data folder is full: reads are served"), "{errors}");
    assert!(errors.contains("has room again"), "{errors}");
    assert_eq!(get(&start(), "/names"), (200, kept.join(" ")));
}

fn post(server: &Program, name: &str) -> u16 {
    server.connect().request("POST", &format!("/add/{name}"), "", "").status()
}

fn get(server: &Program, target: &str) -> (u16, String) {
    let reply = server.connect().get(target);
    (reply.status(), reply.text().to_owned())
}

/// Mounts a small disk for this test, which runs again in a process with its own mounts. `None` if
/// it has run there, or if the system permits no mounts.
fn disk(test: &str) -> Option<PathBuf> {
    if let Some(disk) = std::env::var_os(DISK) {
        return Some(disk.into());
    }
    let folder = Folder::new();
    let mount = format!(
        "mount -t tmpfs -o size={SIZE} none \"${DISK}\" || exit 77; exec \"$0\" --exact \"$1\" --nocapture"
    );
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &mount]).arg(std::env::current_exe().unwrap()).arg(test);
    match command.env(DISK, folder.join("")).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) if output.status.code() == Some(101) => {
            panic!("it failed there: {}", String::from_utf8_lossy(&output.stdout));
        }
        outcome => println!("skipped: nothing can be mounted here: {outcome:?}"),
    }
    None
}
