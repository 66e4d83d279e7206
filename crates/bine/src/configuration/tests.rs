//! Tests of the precedence of sources and of the messages for invalid settings.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::file::Contents;
use super::keys::groups;
use super::{Configuration, Sources};
use bine_server::Settings;
use bine_store::Sync;

fn read(arguments: &[&str]) -> Result<Configuration, String> {
    with(arguments, &[], None)
}

/// The configuration of a command line, environment variables, and the text of a file.
fn with(
    arguments: &[&str],
    variables: &[(&str, &str)],
    file: Option<&str>,
) -> Result<Configuration, String> {
    let sources = Sources {
        arguments: arguments.iter().map(Into::into).collect(),
        environment: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        default_file: None,
        default_data: Some("here".into()),
    };
    let flags = super::Flags::read(&sources.arguments)?;
    let contents = Contents::parse(file.unwrap_or_default().as_bytes(), Path::new(""))
        .map_err(|fault| format!("bine.toml:{}: {}", fault.line, fault.reason))?;
    match flags.config {
        Some(_) => sources.read(),
        None => sources.assemble(flags, None, contents),
    }
}

fn configure(text: &str) -> Result<Configuration, String> {
    with(&[], &[], Some(text))
}

#[test]
fn lists_keys_in_an_order_that_the_linker_cannot_change() {
    let mut places: Vec<_> = groups().map(|group| (group.after, group.rank)).collect();
    places.sort_unstable();
    assert!(places.is_sorted_by(|place, next| place < next), "two have the same place: {places:?}");
}

#[test]
fn accepts_options_with_spaces_or_equals_signs() {
    let choices = read(&["--listen", "127.0.0.1:0", "--loops=3", "--idle-timeout", "2m"]).unwrap();
    assert_eq!(choices.settings.listeners.len(), 1);
    assert_eq!(choices.settings.loops, 3);
    assert_eq!(choices.settings.timeouts.idle, Duration::from_mins(2));
    let choices = read(&["--most-head", "32k", "--access-log", "off"]).unwrap();
    assert_eq!(choices.settings.limits.head, 32 * 1024);
    assert!(choices.logs.access.is_none());
}

#[test]
fn sets_and_disables_guards() {
    let text = "guard-descriptors = \"80\"\nguard-memory = \"off\"\nguard-memory-accept = \"90%\"\nmost-memory = \"512m\"\nback-pressure = \"off\"\n";
    let guards = configure(text).unwrap().settings.guards;
    let actual = (guards.descriptors, guards.memory_refuses, guards.memory_pauses, guards.memory);
    assert_eq!(actual, (Some(80), None, Some(90), Some(512 << 20)));
    assert!(!guards.back_pressure);
    for wrong in ["0", "101", "much", "-1"] {
        let actual = read(&["--guard-memory", wrong]).map(|_| ()).unwrap_err();
        assert!(actual.contains("must be a percentage from 1 to 100, or off"), "{actual}");
    }
}

#[test]
fn reads_the_budgets_of_all_connections() {
    let text = "budget-bodies = \"32m\"\nbudget-uploads = \"2g\"\nbudget-unsent = \"auto\"\nbudget-share = \"10%\"\n";
    let budgets = configure(text).unwrap().settings.budgets;
    assert_eq!((budgets.bodies, budgets.uploads), (Some(32 << 20), Some(2 << 30)));
    assert_eq!((budgets.unsent, budgets.share), (None, Some(10)));
}

#[test]
fn reads_which_addresses_expect_headers_of_proxies() {
    let arguments = ["--listen", ":1", "--listen", ":2,proxy=on", "--listen", ":3,proxy=off"];
    let trust = ["--trusted-proxies", "10.0.0.0/8"];
    let listeners = read(&[&arguments[..], &trust].concat()).unwrap().settings.listeners;
    assert_eq!(listeners.iter().map(|each| each.proxy).collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn default_workers_depend_on_the_scheduler_in_any_order() {
    for (arguments, expected) in [
        (&["--scheduler", "hybrid"][..], Settings::default().workers),
        (&["--scheduler", "pool"], Settings::usual_workers("pool")),
        (&["--workers", "auto", "--scheduler", "pool"], Settings::usual_workers("pool")),
        (&["--workers", "3", "--scheduler", "pool"], 3),
    ] {
        assert_eq!(read(arguments).unwrap().settings.workers, expected, "{arguments:?}");
    }
}

/// Each default exists twice, where it is used and where it is displayed.
#[test]
fn displayed_defaults_equal_those_of_the_server() {
    let mut expected = Settings::default();
    expected.listeners.push("127.0.0.1:8080".parse().map(bine_server::Listen::on).unwrap());
    assert_eq!(format!("{:?}", read(&[]).unwrap().settings), format!("{expected:?}"));
}

#[test]
fn flags_override_variables_override_the_file() {
    let file = "idle-timeout = \"1s\"\nlisten = [\":1\", \":2\"]\n";
    let variable = [("BINE_IDLE_TIMEOUT", "2s"), ("BINE_LISTEN", ":3  :4 :5")];
    let idle = |configuration: &Configuration| configuration.settings.timeouts.idle.as_secs();
    let chosen = configure(file).unwrap();
    assert_eq!((idle(&chosen), chosen.settings.listeners.len()), (1, 2));
    let chosen = with(&[], &variable, Some(file)).unwrap();
    assert_eq!((idle(&chosen), chosen.settings.listeners.len()), (2, 3));
    let flags = ["--idle-timeout=3s", "--listen=:6"];
    let chosen = with(&flags, &variable, Some(file)).unwrap();
    assert_eq!((idle(&chosen), chosen.settings.listeners.len()), (3, 1));
}

#[test]
fn messages_for_invalid_settings_name_the_correction() {
    let cases: &[(&[&str], &str)] = &[
        (&["--lop", "3"], "did you mean `loops`"),
        (&["--loops", "0"], "--loops 0: must be a whole number, 1 or more"),
        (&["--listen", "nowhere"], "write HOST:PORT"),
        (&["--listen", ":80,fast"], "`fast` is none of backlog=N"),
        (&["--listen", ":80,proxy=yes"], "proxy=on|off"),
        (&["--listen", ":80,proxy=on"], "name the proxies that connect to it in `trusted-proxies`"),
        (&["--https-redirect", "on"], "no proxy is trusted; see `tls` and `trusted-proxies`"),
        (&["--idle-timeout", "5"], "must be a time like"),
        (&["--idle-timeout", "99999999999999999999s"], "must be a time like"),
        (&["--most-head", "5t"], "must be a number of bytes"),
        (&["--most-head", "0"], "must be a number of bytes"),
        (&["--most-head", "5g"], "is more than this key allows"),
        (&["--hidden", "perhaps"], "must be on or off"),
        (&["--admission-retry", "9-5"], "must be a range of seconds, like 5-20"),
        (&["--admission-most", "0"], "must be a whole number, 1 or more"),
        (&["--admission-most", "262145"], "must be 262144 or less"),
        (&["--admission-least", "1000000"], "must be 262144 or less"),
        (&["--config", "/nowhere/at/all"], "cannot read /nowhere/at/all"),
        (&["--user", "nobody-of-that-name"], "no user"),
    ];
    for (arguments, expected) in cases {
        let error = read(arguments).unwrap_err();
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let error = with(&[], &[("BINE_LOOPS", "many")], None).unwrap_err();
    assert_eq!(error, "BINE_LOOPS=many: must be a whole number, 1 or more");
}

#[test]
fn warns_only_of_variables_that_resemble_a_setting() {
    let variables = [("BINE_IDLE_TIMEOUTS", "1s"), ("BINE_SERVICE_PORT_HTTP", "80")];
    let warnings = with(&[], &variables, None).unwrap().warnings;
    let expected =
        "BINE_IDLE_TIMEOUTS in the environment is no setting; did you mean BINE_IDLE_TIMEOUT?";
    assert_eq!(warnings, [expected]);
}

#[test]
fn names_the_invalid_line_of_a_file() {
    for (text, expected) in [
        ("loops = 2\nloop = 3\n", "2: unknown setting `loop`; did you mean `loops`?"),
        ("loops = 0\n", "1: loops: must be a whole number"),
        ("\n\nloops = {}\n", "3: loops: write N"),
        ("loops = [1, 2]\n", "1: loops: write one N|auto, not a list"),
        ("loops = \n", "1: "),
        ("[site]\nroot = \"a\"\n", "1: a site needs the line [[site]]"),
        ("\n[[site]]\nroot = \"a\"\n", "2: a site says for whom it is"),
        (
            "[[site]]\nhosts = [\"a\"]\nrot = \"b\"\n",
            "3: unknown setting of a site `rot`; did you mean `root`?",
        ),
        (
            "[[site]]\nhosts = [\"a\"]\nloops = 2\n",
            "3: `loops` is a key of the server, not of a site",
        ),
        ("[[site]]\nhosts = [\"a b\"]\n", "2: hosts: `a b` is not a host"),
        (
            "[[site]]\nhosts = [\"a\"]\n[[site]]\nhosts = [\"A\"]\n",
            "4: hosts: `A` has a site already",
        ),
        ("[[site]]\nhosts = [\"a\"]\nhidden = \"x\"\n", "3: hidden: must be on or off"),
        ("a = \"\u{7}\"", "1: "),
    ] {
        let error = configure(text).unwrap_err();
        assert!(error.starts_with(&format!("bine.toml:{expected}")), "{text:?}: {error}");
    }
}

#[test]
fn sites_inherit_unset_settings() {
    let text = "root = \"all\"\nhidden = true\nindex = [\"a.html\", \"b.html\"]\n\
                [[site]]\nhosts = [\"one.org\", \"*.one.org\"]\nroot = \"one\"\n\
                [[site]]\nhosts = \"two.org\"\nindex = \"c.html\"\nhidden = false\npages = false\n";
    let sites = configure(text).unwrap().sites;
    let (hosts, one) = &sites[0];
    assert_eq!((hosts.len(), one.root.as_deref()), (2, Some(Path::new("one"))));
    assert!(one.hidden && one.pages && one.index.len() == 2);
    let (_, two) = &sites[1];
    assert_eq!(
        (two.root.as_deref(), &two.index[..]),
        (Some(Path::new("all")), &["c.html".into()][..])
    );
    assert!(!two.hidden && !two.pages);
}

/// Paths in a file are relative to the file's folder, wherever the program was started.
#[test]
fn paths_in_a_file_are_relative_to_its_folder() {
    let text = b"root = \"www\"\naccess-log = \"off\"\nerror-log = \"/var/log/x\"\n";
    let contents = Contents::parse(text, Path::new("/etc/bine")).unwrap();
    let texts: Vec<&str> = contents.values.iter().map(|given| &*given.values[0].text).collect();
    for expected in ["/etc/bine/www", "off", "/var/log/x"] {
        assert!(texts.contains(&expected), "{texts:?}");
    }
}

#[test]
fn shown_configuration_can_be_read_back() {
    let file = "field = [\"*.css A: \\\"b\\\\\"]\nmost-head = 20000\nhidden = true\n\
                [[site]]\nhosts = [\"x.org\"]\nroot = \"x\"\n";
    let first = with(&["--idle-timeout=7s"], &[("BINE_LISTEN", ":1 :2")], Some(file)).unwrap();
    let shown = first.shown();
    for line in [
        "idle-timeout = \"7s\"  # --idle-timeout",
        "listen = [\":1\", \":2\"]  # environment BINE_LISTEN",
        "most-head = 20000  # bine.toml:2",
        "hidden = true  # bine.toml:3",
        "queue = 1024  # default",
        "[[site]]  # bine.toml:4",
        "root = \"x\"  # bine.toml:6",
    ] {
        assert!(shown.lines().any(|other| other == line), "{line} is not in\n{shown}");
    }
    let again = configure(&shown).unwrap();
    assert_eq!(format!("{:?}", again.settings), format!("{:?}", first.settings));
    assert_eq!((again.site, again.sites, again.logs), (first.site, first.sites, first.logs));
}

#[test]
fn detects_changes_that_need_a_restart() {
    let old = configure("loops = 1\nidle-timeout = \"1s\"\n").unwrap();
    let new = configure("loops = 2\nidle-timeout = \"2s\"\nuser = \"1:1\"\n").unwrap();
    assert_eq!(old.needs_restart(&new), ["loops", "user"]);
    assert!(old.needs_restart(&old).is_empty());
}

/// A configuration that uses everything, for mutations.
const FULL: &str = r#"
listen = ["127.0.0.1:8080,backlog=12", "unix:/tmp/x"]  # two
loops = 2
root = "www"
field = ["*.css Cache-Control: max-age=3600"]
idle-timeout = "5s"
hidden = false

[[site]]
hosts = ["example.org", "*.example.org"]
index = ["index.html"]

[[site]]
hosts = ["b.org"]
root = '''
b'''
"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn names_a_line_for_any_mutated_file(
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..6, "\\PC{0,3}|[\\[\\]\"'=\n{}.#]{1,3}"), 1..5)
    ) {
        let mut text = FULL.to_owned();
        for (at, length, instead) in cuts {
            let start = text.floor_char_boundary(at.index(text.len().max(1)));
            let end = text.floor_char_boundary(start + length).max(start);
            text.replace_range(start..end, &instead);
        }
        if let Err(error) = configure(&text) {
            let line = error.strip_prefix("bine.toml:").and_then(|rest| rest.split(':').next());
            let line: Option<usize> = line.and_then(|line| line.parse().ok());
            prop_assert!(line.is_some_and(|line| line > 0 && line <= text.lines().count() + 1), "{error}");
        }
    }

    #[test]
    fn names_a_line_for_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(fault) = Contents::parse(&bytes, Path::new("")) {
            prop_assert!(fault.line > 0 && !fault.reason.is_empty());
        }
    }
}

#[test]
fn configured_data_folder_overrides_the_program() {
    let data = |text| {
        let own = configure(text).unwrap();
        own.data.map(|folder| folder.to_str().unwrap().to_owned())
    };
    assert_eq!(data("").as_deref(), Some("here"));
    assert_eq!(data("data = \"there\"").as_deref(), Some("there"));
    assert_eq!(data("data = \"memory\""), None);
}

#[test]
fn parses_when_writes_are_acknowledged() {
    let sync = |text: &str| configure(&format!("sync = {text:?}")).map(|own| own.sync);
    assert_eq!(configure("").unwrap().sync, Sync::Commit);
    assert_eq!(sync("commit"), Ok(Sync::Commit));
    assert_eq!(sync("interval"), Ok(Sync::Interval(Duration::from_millis(100))));
    assert_eq!(sync("2s"), Ok(Sync::Interval(Duration::from_secs(2))));
    assert_eq!(sync("none"), Ok(Sync::None));
    let refused = sync("often").unwrap_err();
    assert!(refused.contains("must be commit, none, or a time like 100ms"), "{refused}");
}
