//! Tests of the messages for wrong command lines and configuration files.

use crate::harness::{Folder, Program, SCHEDULERS};
use crate::{bine, run, start};

/// Asserts that wrong usage exits with 2, and prints the message and the usage to standard error
/// only.
#[track_caller]
fn check_usage(arguments: &[&str], message: &str) {
    let ended = run(arguments);
    assert_eq!((ended.code, ended.output.as_str()), (Some(2), ""), "{arguments:?}: {ended:?}");
    let first = ended.errors.lines().next().unwrap_or_default();
    assert_eq!(first, message, "{arguments:?}");
    assert!(ended.errors.contains("Usage: bine serve [DIR] [OPTION]..."), "{}", ended.errors);
}

#[test]
fn suggests_correct_arguments() {
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
        "--listen nowhere: `nowhere` is not an address; write HOST:PORT (127.0.0.1:8080, [::1]:8080, \
         :8080 for all), localhost:PORT or unix:/path/to/socket",
    );
    check_usage(
        &["--user", "nobody-of-that-name"],
        "--user nobody-of-that-name: no user `nobody-of-that-name` in /etc/passwd; name one there, \
         or write UID:GID",
    );
    check_usage(
        &["--scheduler", "fastest"],
        "--scheduler fastest: unknown scheduler `fastest`; the schedulers are hybrid, event, cohort, nothread, one-to-one, pool, accept-many, queue",
    );
}

#[test]
fn reports_line_of_wrong_setting() {
    let folder = Folder::new();
    for (text, message) in [
        (
            "loops = 1\nlop = 2\n",
            "2: unknown setting `lop`; did you mean `loops`? (--help lists all)",
        ),
        ("\nidle-timeout = \"soon\"\n", "2: idle-timeout: must be a time like 500ms, 10s or 2m"),
        (
            "scheduler = \"x\"\n",
            "1: scheduler: unknown scheduler `x`; the schedulers are hybrid, event, cohort, nothread, one-to-one, pool, accept-many, queue",
        ),
        (
            "listen = [\"127.0.0.1:0\", \"x\"]\n",
            "1: listen: `x` is not an address; write HOST:PORT (127.0.0.1:8080, [::1]:8080, :8080 for all), localhost:PORT or unix:/path/to/socket",
        ),
    ] {
        let path = folder.write("bine.toml", text.as_bytes());
        let path = path.to_str().unwrap();
        check_usage(&["--config", path], &format!("{path}:{message}"));
    }
    let absent = folder.join("absent.toml");
    let absent = absent.to_str().unwrap();
    let message = format!("cannot read {absent}: No such file or directory (os error 2)");
    check_usage(&["--config", absent], &message);
}

#[test]
fn overrides_configuration_by_options() {
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

/// Long because it lists every option.
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
        "trusted-proxies",
        "proxy-fields",
        "nosniff",
        "frames",
        "content-security-policy",
        "http2",
        "handshakes",
        "handshake-rate",
        "root",
        "index",
        "listing",
        "precompressed",
        "hidden",
        "field",
        "pages",
        "proxy",
        "compress",
        "compress-path",
        "compress-encodings",
        "compress-level",
        "compress-least",
        "compress-types",
        "compress-cache",
        "compress-streams",
        "development",
        "data-browser",
        "profile-allocations",
        "profile-after",
        "profile-requests",
        "trace-stages",
        "trace-spans",
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
        "rule",
        "group",
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
        "accounts",
        "account",
        "api-tokens",
        "cluster",
        "cluster-name",
        "cluster-node",
        "cluster-copies",
        "cluster-credentials",
        "cluster-authority",
        "cluster-certificate",
        "cluster-certificate-key",
        "cluster-snapshot",
        "every",
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
        "leave-time",
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
    assert_eq!(listed, options, "add new options to this list");
    // These take no value.
    listed.retain(|option| !["help", "routes", "supervise"].contains(option));
    for option in listed {
        // Each option is known: the error is only the missing value.
        let message = format!("missing argument for option '--{option}'");
        check_usage(&[&format!("--{option}")], &message);
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
fn prints_version_of_package() {
    for option in ["--version", "-V"] {
        let ended = run(&[option]);
        assert_eq!(ended.code, Some(0));
        assert_eq!(ended.output, concat!("bine ", env!("CARGO_PKG_VERSION"), "\n"));
    }
}

#[test]
fn serves_and_exits_with_each_scheduler() {
    for scheduler in SCHEDULERS {
        let program = start(&["--scheduler", scheduler]);
        assert_eq!(program.connect().get("/hello?name=a").status(), 200);
        let ended = program.stop();
        // A warning that the machine is overloaded may be true: other tests run at the same time.
        let errors = ended.errors.lines().filter(|line| !line.contains(" blocked its event loop "));
        let found = (ended.code, ended.output.as_str(), errors.collect::<Vec<_>>());
        assert_eq!(found, (Some(0), "", Vec::new()), "{scheduler}");
    }
}

#[test]
fn reports_services_that_cannot_run_at_an_interval() {
    for (service, problem) in [
        ("/board/post", "cannot run at an interval, because it has arguments"),
        ("/board/absent", "because the program has no such service"),
    ] {
        let job = format!("1h {service}");
        let ended = run(&["--listen", "127.0.0.1:0", "--data", "memory", "--every", &job]);
        assert!(ended.errors.contains(problem), "{}", ended.errors);
        assert_eq!(ended.code, Some(1));
    }
}

#[test]
fn exits_with_1_if_resource_is_unavailable() {
    let folder = Folder::new();
    let absent = folder.join("absent");
    let absent = absent.to_str().unwrap();
    let ended = run(&["serve", absent]);
    let message =
        format!("bine: cannot serve files from {absent}: No such file or directory (os error 2)\n");
    assert_eq!((ended.code, ended.errors), (Some(1), message));
    // The server creates a folder for the log, but not below a file.
    let log = folder.write("file", b"").join("log");
    let ended = run(&["--listen", "127.0.0.1:0", "--access-log", log.to_str().unwrap()]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains(log.to_str().unwrap()), "{}", ended.errors);
}
