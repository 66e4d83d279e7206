//! Decides what the command line and the configuration file are told when they are wrong.

use crate::harness::{Folder, Program, SCHEDULERS};
use crate::{bine, run, start};

/// Wrong usage ends with 2 and says what would be right; nothing goes to standard output.
#[track_caller]
fn check_usage(arguments: &[&str], told: &str) {
    let ended = run(arguments);
    assert_eq!((ended.code, ended.output.as_str()), (Some(2), ""), "{arguments:?}: {ended:?}");
    let first = ended.errors.lines().next().unwrap_or_default();
    assert_eq!(first, told, "{arguments:?}");
    assert!(ended.errors.contains("Usage: bine serve [DIR] [OPTION]..."), "{}", ended.errors);
}

#[test]
fn a_wrong_word_is_told_with_what_would_be_right() {
    check_usage(
        &["--lop", "2"],
        "unknown option `--lop`; did you mean `loops`? (--help lists all)",
    );
    check_usage(&["--frobnicate"], "unknown option `--frobnicate` (--help lists all)");
    check_usage(&["--loops", "0"], "--loops 0: must be a whole number, 1 or more");
    check_usage(&["--loops"], "missing argument for option '--loops'");
    check_usage(&["-x"], "invalid option '-x'");
    check_usage(&["sevre", "."], "bine: there is no command `sevre`");
    check_usage(&["serve"], "which folder? Name it, or set `root`");
    check_usage(&["serve", "--loops", "2"], "which folder? Name it, or set `root`");
    check_usage(&["serve", ".", "more"], "unexpected argument \"more\"");
    check_usage(
        &["--listen", "nowhere"],
        "--listen nowhere: `nowhere` is no address; write HOST:PORT (127.0.0.1:8080, [::1]:8080, \
         :8080 for all), localhost:PORT or unix:/path/to/socket",
    );
    check_usage(
        &["--user", "nobody-of-that-name"],
        "--user nobody-of-that-name: no user `nobody-of-that-name` in /etc/passwd; name one there, \
         or write UID:GID",
    );
    check_usage(
        &["--scheduler", "fastest"],
        "--scheduler fastest: no scheduler is called `fastest`; there are hybrid, event, cohort, nothread, one-to-one, pool, accept-many, queue",
    );
}

#[test]
fn a_wrong_line_of_a_configuration_is_told_by_its_number() {
    let folder = Folder::new();
    for (text, told) in [
        (
            "loops = 1\nlop = 2\n",
            "2: unknown setting `lop`; did you mean `loops`? (--help lists all)",
        ),
        ("\nidle-timeout = \"soon\"\n", "2: idle-timeout: must be a time like 500ms, 10s or 2m"),
        (
            "scheduler = \"x\"\n",
            "1: scheduler: no scheduler is called `x`; there are hybrid, event, cohort, nothread, one-to-one, pool, accept-many, queue",
        ),
        (
            "listen = [\"127.0.0.1:0\", \"x\"]\n",
            "1: listen: `x` is no address; write HOST:PORT (127.0.0.1:8080, [::1]:8080, :8080 for all), localhost:PORT or unix:/path/to/socket",
        ),
    ] {
        let path = folder.write("bine.toml", text.as_bytes());
        let path = path.to_str().unwrap();
        check_usage(&["--config", path], &format!("{path}:{told}"));
    }
    let absent = folder.join("absent.toml");
    let absent = absent.to_str().unwrap();
    let told = format!("cannot read {absent}: No such file or directory (os error 2)");
    check_usage(&["--config", absent], &told);
}

#[test]
fn a_configuration_says_what_options_say_and_later_ones_win() {
    let folder = Folder::new();
    let text =
        "listen = \"127.0.0.1:0\"\nscheduler = \"pool\"\nworkers = 2\nmost-target = \"100\"\n";
    let config = folder.write("bine.toml", text.as_bytes());
    let long = format!("/{}", "x".repeat(120));
    let config = config.to_str().unwrap();
    let program = Program::start(&mut bine(&["--config", config]));
    assert_eq!(program.connect().get(&long).status(), 414);
    let program = Program::start(&mut bine(&["--config", config, "--most-target", "200"]));
    assert_eq!(program.connect().get(&long).status(), 404);
}

/// Long because every option stands here.
#[test]
fn help_lists_every_option_and_every_scheduler() {
    let ended = run(&["--help"]);
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""));
    let help = ended.output;
    assert!(help.starts_with("Usage: bine serve [DIR] [OPTION]..."), "{help}");
    let options = [
        "listen",
        "scheduler",
        "loops",
        "workers",
        "tls",
        "certificate",
        "certificate-key",
        "acme-host",
        "acme-email",
        "acme-directory",
        "acme-roots",
        "https-redirect",
        "hsts",
        "hosts",
        "nosniff",
        "frames",
        "content-security-policy",
        "handshakes",
        "handshake-rate",
        "root",
        "index",
        "listing",
        "precompressed",
        "hidden",
        "field",
        "pages",
        "development",
        "access-log",
        "access-log-format",
        "access-log-when-full",
        "error-log",
        "error-log-level",
        "metrics",
        "health",
        "health-log",
        "control",
        "data",
        "sync",
        "live-threads",
        "live-joins",
        "session-idle",
        "session-absolute",
        "channels-follow",
        "channels-publish",
        "channels-manage",
        "channels-key",
        "channels-issuer",
        "channels-audience",
        "channels-origin",
        "channels-holds",
        "channels-holds-per-address",
        "channels-holds-per-subject",
        "channels-messages-per-address",
        "channels-bytes",
        "channels-bytes-per-channel",
        "channels-bytes-per-subject",
        "channels-messages-per-subject",
        "user",
        "connections",
        "connections-per-address",
        "connections-local",
        "queue",
        "admission",
        "admission-least",
        "admission-most",
        "admission-wait",
        "admission-idle",
        "admission-retry",
        "back-pressure",
        "guard-descriptors",
        "guard-memory",
        "guard-memory-accept",
        "most-memory",
        "budget-bodies",
        "budget-uploads",
        "budget-unsent",
        "budget-share",
        "most-head",
        "most-fields",
        "most-target",
        "most-body",
        "first-byte-timeout",
        "handshake-timeout",
        "head-timeout",
        "body-timeout",
        "handler-timeout",
        "write-timeout",
        "least-rate",
        "idle-timeout",
        "queue-timeout",
        "linger-timeout",
        "drain-timeout",
        "watchdog-report",
        "watchdog-replace",
        "unsent",
        "unread-body",
        "most-upload",
        "spool",
        "chunk-at",
        "config",
        "supervise",
        "routes",
        "help",
    ];
    let mut listed: Vec<&str> =
        help.lines().filter_map(|line| line.strip_prefix("  --")?.split(' ').next()).collect();
    assert_eq!(listed, options, "an option that is new has to be tried here as well");
    // These take no value.
    listed.retain(|option| !["help", "routes", "supervise"].contains(option));
    for option in listed {
        // Each is known: what is complained of is the missing value.
        let told = format!("missing argument for option '--{option}'");
        check_usage(&[&format!("--{option}")], &told);
    }
    for scheduler in SCHEDULERS {
        assert!(help.contains(&format!("\n  {scheduler} ")), "{scheduler}: {help}");
    }
    for same in
        [&["-h"][..], &["serve", "--help"], &["--scheduler", "help"], &["--loops", "2", "-h"]]
    {
        assert_eq!(run(same).output, help, "{same:?}");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    for option in ["--version", "-V"] {
        let ended = run(&[option]);
        assert_eq!(ended.code, Some(0));
        assert_eq!(ended.output, concat!("bine ", env!("CARGO_PKG_VERSION"), "\n"));
    }
}

#[test]
fn each_scheduler_serves_and_ends_well() {
    for scheduler in SCHEDULERS {
        let program = start(&["--scheduler", scheduler]);
        assert_eq!(program.connect().get("/hello?name=a").status(), 200);
        let ended = program.stop();
        let expected = (Some(0), String::new(), String::new());
        assert_eq!((ended.code, ended.output, ended.errors), expected, "{scheduler}");
    }
}

#[test]
fn what_cannot_be_had_ends_with_1() {
    let folder = Folder::new();
    let absent = folder.join("absent");
    let absent = absent.to_str().unwrap();
    let ended = run(&["serve", absent]);
    let told =
        format!("bine: cannot serve files from {absent}: No such file or directory (os error 2)\n");
    assert_eq!((ended.code, ended.errors), (Some(1), told));
    // A folder is made for a log, but no file becomes one.
    let log = folder.write("file", b"").join("log");
    let ended = run(&["--listen", "127.0.0.1:0", "--access-log", log.to_str().unwrap()]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains(log.to_str().unwrap()), "{}", ended.errors);
}
