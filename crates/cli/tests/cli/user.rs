//! `bine user`: rules and groups of a running server, and of its configuration file.

use std::process::Command;

use crate::bine;
use crate::harness::{Ended, Folder, Program};

/// A folder with files, a configuration with rules, and a server.
struct Site(Folder);

impl Site {
    fn new() -> Self {
        let folder = Folder::new();
        folder.write("www/index.html", b"home");
        folder.write("www/staff/plan.txt", b"plan");
        Self(folder)
    }

    fn configure(&self, rest: &str) {
        let head =
            "listen = \"127.0.0.1:0\"\ncontrol = \"control\"\nroot = \"www\"\ndata = \"data\"\n";
        self.0.write("bine.toml", format!("{head}{rest}").as_bytes());
    }

    fn bine(&self, words: &[&str]) -> Command {
        let config = self.0.join("bine.toml");
        bine(&[words, &["--config", config.to_str().unwrap()]].concat())
    }

    /// Runs a command and returns its output.
    fn user(&self, words: &[&str]) -> Ended {
        Program::run(&mut self.bine(&[&["user"], words].concat()))
    }

    #[track_caller]
    fn check(&self, words: &[&str], expected: &str) {
        let ended = self.user(words);
        assert_eq!((ended.code, ended.output.trim_end()), (Some(0), expected), "{ended:?}");
    }

    #[track_caller]
    fn refuse(&self, words: &[&str], expected: &str) {
        let ended = self.user(words);
        assert!(ended.code != Some(0) && ended.errors.contains(expected), "{expected}: {ended:?}");
    }
}

const RULES: &str = "rule = [\"/staff/* read group:staff\"]\ngroup = [\"staff: ann\"]\n";

#[test]
fn commands_change_rules_and_groups_of_a_running_server() {
    let site = Site::new();
    site.configure(RULES);
    let program = Program::start(&mut site.bine(&["serve"]));
    let status = |target: &str| program.connect().get(target).status();
    assert_eq!((status("/"), status("/staff/plan.txt")), (200, 401));
    site.check(
        &["check", "ann", "/staff/plan.txt"],
        "ann may read /staff/plan.txt: the rules for /staff/* decide\n* read group:staff  (configuration)\nann is in: staff",
    );
    site.check(
        &["check", "ben", "/staff/plan.txt"],
        "ben may not read /staff/plan.txt: the rules for /staff/* decide\n  read group:staff  (configuration)\nben is in: no groups",
    );
    site.check(
        &["check", "anonymous", "/", "POST"],
        "anonymous may write /: no rule matches, so it is open",
    );
    site.check(&["group", "ben", "+staff"], "ben: staff");
    site.check(&["group", "ben", "+staff"], "note: ben was already in staff\nben: staff");
    site.check(
        &["group", "ben", "+staf"],
        "note: the group `staf` is new; did you mean `staff`?\nben: staf staff",
    );
    site.check(&["group", "ben", "-staf"], "ben: staff");
    site.check(
        &["group", "ann", "-staff"],
        "note: the program or the configuration file keeps ann in staff; change it there\nann: staff",
    );
    site.check(
        &["grant", "anonymous", "read", "/staff/plan.txt"],
        "granted: /staff/plan.txt read anonymous",
    );
    assert_eq!(status("/staff/plan.txt"), 200);
    site.check(
        &["grant", "anonymous", "read", "/staff/plan.txt"],
        "note: it was granted already: /staff/plan.txt read anonymous",
    );
    let ended = site.user(&["rules"]);
    for line in [
        "/staff/* read group:staff  (configuration)\n",
        "/staff/plan.txt read anonymous  (stored)\n",
        "/_bine/reload write administrators  (program)\n",
    ] {
        assert!(ended.output.contains(line), "{line} is not in {}", ended.output);
    }
    let ended = site.user(&["revoke", "anonymous", "read", "/staff/plan.txt"]);
    assert!(ended.output.contains("has no rule any more"), "{ended:?}");
    assert_eq!(status("/staff/plan.txt"), 401);
    site.check(&["group", "eva", "+staff"], "eva: staff");
    site.check(&["grant", "eva", "write", "/x"], "granted: /x write eva");
    site.check(&["revoke", "eva"], "revoked: 2 stored rights and groups of eva");
    site.check(&["group", "eva"], "eva: no groups");
    // Errors name the correction.
    site.refuse(&["revoke", "anonymous", "read", "/staff/plan.txt"], "there is no such rule");
    site.refuse(
        &["revoke", "group:staff", "read", "/staff/*"],
        "the configuration gives this right",
    );
    site.refuse(&["grant", "ann", "see", "/x"], "a path has read and write");
    site.refuse(&["grant", "ann", "read", "/a*b"], "the whole last segment");
    site.refuse(&["grant", "ann"], "write: bine user grant WHO RIGHT PATTERN");
    site.refuse(&["group", "anonymous", "+staff"], "reserved");
    site.refuse(&["group", "ann", "staff"], "write +staff");
    site.refuse(&["check", "ann", "/x", "LOOK"], "is no method and no right");
    site.refuse(&["unknown"], "unknown command `user unknown`; see bine user --help");
    assert_eq!(program.stop().code, Some(0));
    // Stored changes survive a restart.
    let program = Program::start(&mut site.bine(&["serve"]));
    site.check(&["group", "ben"], "ben: staff");
    assert_eq!(program.stop().code, Some(0));
    site.refuse(&["group", "ben"], "start the server first");
}

#[test]
fn reload_applies_the_rules_of_the_configuration_file() {
    let site = Site::new();
    site.configure(RULES);
    let program = Program::start(&mut site.bine(&["serve"]));
    let status = |target: &str| program.connect().get(target).status();
    assert_eq!((status("/"), status("/staff/plan.txt")), (200, 401));
    site.configure("rule = [\"/* read users\", \"/staff/* read anonymous\"]\n");
    assert_eq!(Program::run(&mut site.bine(&["reload"])).code, Some(0));
    assert_eq!((status("/"), status("/index.html"), status("/staff/plan.txt")), (401, 401, 200));
    site.configure("rule = [\"/staff/* see anonymous\"]\n");
    let ended = Program::run(&mut site.bine(&["reload"]));
    assert!(ended.errors.contains("bine.toml:5: rule: there is no right `see`"), "{ended:?}");
    assert_eq!((status("/"), status("/staff/plan.txt")), (401, 200));
    site.configure("");
    assert_eq!(Program::run(&mut site.bine(&["reload"])).code, Some(0));
    assert_eq!((status("/"), status("/staff/plan.txt")), (200, 200));
    assert_eq!(program.stop().code, Some(0));
}

#[test]
fn a_server_that_started_without_rules_rejects_a_reload_with_rules() {
    let site = Site::new();
    site.configure("");
    let program = Program::start(&mut site.bine(&["serve"]));
    site.refuse(&["rules"], "runs without rights");
    site.configure(RULES);
    let ended = Program::run(&mut site.bine(&["reload"]));
    assert!(ended.code == Some(1) && ended.errors.contains("restart it"), "{ended:?}");
    assert_eq!(program.connect().get("/staff/plan.txt").status(), 200);
    assert_eq!(program.stop().code, Some(0));
}

#[test]
fn helps_without_a_server() {
    let ended = Program::run(&mut bine(&["user", "--help"]));
    assert!(ended.code == Some(0) && ended.output.contains("bine user grant WHO RIGHT PATTERN"));
    let ended = Program::run(&mut bine(&["user"]));
    assert!(ended.code == Some(2) && ended.errors.contains("Usage: bine user rules"));
}
