//! Tests of decisions: spellings of a path, precedence and union of rules, and a plain model.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A table with these lines of the configuration.
fn table(rules: &[&str], members: &[&str]) -> RightsTable {
    let mut table = RightsTable::new(RuleSource::default());
    table.configure(source(rules, members), vec!["index.html".to_owned()]);
    table
}

fn source(rules: &[&str], members: &[&str]) -> RuleSource {
    let rules = rules.iter().flat_map(|line| RightRule::parse_line(line).unwrap());
    let members = members.iter().flat_map(|line| Membership::parse_line(line).unwrap());
    RuleSource { rules: rules.collect(), members: members.collect() }
}

/// The permitted readers of the path, among `ann`, `ben` and the visitor without a login.
fn readers(table: &RightsTable, path: &str) -> String {
    who_may(table, path, Right::Read)
}

fn who_may(table: &RightsTable, path: &str, right: Right) -> String {
    let all = [("ann", Some("ann")), ("ben", Some("ben")), ("anonymous", None)];
    let may = |user| {
        let client = table.client(user);
        if right.is_for_channels() {
            table.decide_channel(path, right, client).is_allowed
        } else {
            table.decide_path(path, right, client).is_allowed
        }
    };
    let names: Vec<_> = all.into_iter().filter(|(_, user)| may(*user)).map(|all| all.0).collect();
    names.join(" ")
}

const EVERYONE: &str = "ann ben anonymous";

#[test]
fn most_specific_pattern_decides_alone() {
    let table = table(
        &[
            "/* read anonymous",
            "/admin/* write administrators",
            "/admin/{page}/help read users",
            "/admin/public write anonymous",
        ],
        &["administrators: ann"],
    );
    for (path, expected) in [
        ("/", EVERYONE),
        ("/x/y", EVERYONE),
        ("/admin", "ann"),
        ("/admin/", "ann"),
        ("/admin/x", "ann"),
        ("/admin/x/help", "ann ben"),
        ("/admin/x/help/", "ann ben"),
        ("/admin/x/help/more", "ann"),
        ("/admin/public", EVERYONE),
        ("/administrators", EVERYONE),
    ] {
        assert_eq!(readers(&table, path), expected, "{path}");
    }
    assert_eq!(who_may(&table, "/x", Right::Write), "");
}

#[test]
fn leaves_paths_without_a_rule_open() {
    let table = table(&["/a/* read ann"], &[]);
    assert_eq!(readers(&table, "/b"), EVERYONE);
    assert_eq!(who_may(&table, "/b", Right::Write), EVERYONE);
    assert!(table.decide_path("/b", Right::Read, table.client(None)).entry.is_none());
}

#[test]
fn unites_the_rights_of_a_user_its_groups_and_everyone() {
    let table = table(
        &["/a read group:editors", "/a write ann", "/b read users", "/c read group:none"],
        &["editors: ann, ben"],
    );
    assert_eq!(readers(&table, "/a"), "ann ben");
    assert_eq!(who_may(&table, "/a", Right::Write), "ann");
    assert_eq!(readers(&table, "/b"), "ann ben");
    assert_eq!(readers(&table, "/c"), "");
}

#[test]
fn decides_all_spellings_of_a_file_alike() {
    let table = table(
        &[
            "/* read anonymous",
            "/secret/* read ann",
            "/docs read ann",
            "/one.html read ann",
            "/two/index.html read ann",
            "/three/{x} read ann",
            "/one.html.gz read ben",
        ],
        &[],
    );
    for path in [
        "/secret",
        "/secret/",
        "/secret/x",
        "/secret/x.gz",
        "/secret//x",
        "//secret/x",
        "/secret//",
        "/docs",
        "/docs/",
        "/docs/index.html",
        "/docs/index.html.gz",
        "/docs/index.html.br",
        "/one.html",
        "/one.html/",
        "/one.html.br",
        "/one.html.zst",
        "/two",
        "/two/",
        "/two/index.html",
        "/two/index.html.gz",
        "/three/x",
        "/three/x.gz",
        "/three/x/index.html",
    ] {
        assert_eq!(readers(&table, path), "ann", "{path}");
    }
    // A rule that names the variant itself decides about the variant.
    assert_eq!(readers(&table, "/one.html.gz"), "ben");
    for path in ["/secrets", "/Secret", "/docs.html", "/docs/x", "/two/x", "/three"] {
        assert_eq!(readers(&table, path), EVERYONE, "{path}");
    }
}

#[test]
fn only_rules_that_name_the_framework_decide_about_its_paths() {
    let mut table = table(&["/* read ann", "/{x}/{y} read ann", "/_bine/data/* write ben"], &[]);
    for path in ["/_bine/live", "/_bine/style-1.css", "/_bine/a/b"] {
        assert_eq!(readers(&table, path), EVERYONE, "{path}");
    }
    assert_eq!(readers(&table, "/_bine/data"), "ben");
    assert_eq!(readers(&table, "/_bine/data/x"), "ben");
    for path in ["/_bines", "/x/_bine/live", "//_bine/live"] {
        assert_eq!(readers(&table, path), "ann", "{path}");
    }
    table.configure(source(&["/_bine/* read ben"], &[]), Vec::new());
    assert_eq!(readers(&table, "/_bine/live"), "ben");
}

#[test]
fn keeps_paths_open_unless_a_rule_names_exactly_these() {
    let mut table = table(&["/* read ann", "/reset/{token} read ann", "/health read ben"], &[]);
    for path in ["/log-in", "/reset/{token}", "/health"] {
        table.keep_open(&RightRule::new(path, Right::Read, Who::Anonymous).unwrap());
    }
    assert_eq!(readers(&table, "/log-in"), EVERYONE);
    assert_eq!(who_may(&table, "/log-in", Right::Write), EVERYONE);
    assert_eq!(readers(&table, "/reset/x"), EVERYONE);
    assert_eq!(readers(&table, "/reset"), "ann");
    assert_eq!(readers(&table, "/log-in/x"), "ann");
    assert_eq!(readers(&table, "/health"), "ben");
}

#[test]
fn rules_of_channels_are_separate_from_those_of_paths() {
    let table = table(
        &["/* read ann", "news/* follow anonymous", "news/* publish ann", "news/board follow ben"],
        &[],
    );
    assert_eq!(who_may(&table, "news/x", Right::Follow), EVERYONE);
    assert_eq!(who_may(&table, "news/x", Right::Publish), "ann");
    assert_eq!(who_may(&table, "news/x", Right::Manage), "");
    assert_eq!(who_may(&table, "news/board", Right::Follow), "ben");
    assert!(table.decide_channel("other", Right::Follow, table.client(None)).entry.is_none());
    assert!(table.allows_some_channel(Right::Publish, table.client(Some("ann"))));
    assert!(!table.allows_some_channel(Right::Publish, table.client(Some("ben"))));
}

#[test]
fn changes_of_one_source_leave_the_others_in_effect() {
    let mut table = table(&["/a read ann"], &["editors: ann"]);
    let [one, other] = [1, 2].map(RowId::from_number);
    let rule = |line: &str| RightRule::parse_line(line).unwrap().remove(0);
    let member = |line: &str| Membership::parse_line(line).unwrap().remove(0);
    table.set_stored_rule(one, Some(rule("/a read ann")));
    table.set_stored_rule(other, Some(rule("/b read group:editors")));
    table.set_stored_member(one, Some(member("editors: ann")));
    table.set_stored_member(other, Some(member("editors: ben")));
    assert_eq!((&*readers(&table, "/a"), &*readers(&table, "/b")), ("ann", "ann ben"));
    table.configure(RuleSource::default(), Vec::new());
    assert_eq!((&*readers(&table, "/a"), &*readers(&table, "/b")), ("ann", "ann ben"));
    table.set_stored_member(one, None);
    table.set_stored_rule(one, None);
    assert_eq!((&*readers(&table, "/a"), &*readers(&table, "/b")), (EVERYONE, "ben"));
    table.set_stored_rule(other, None);
    assert_eq!(readers(&table, "/b"), EVERYONE);
    assert_eq!((table.rules().len(), table.groups_of("ben")), (0, vec!["editors"]));
}

#[test]
fn rejects_too_many_groups_of_a_user() {
    let lines: Vec<String> = (0..=MAX_GROUPS).map(|number| format!("g{number}: ann")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert!(source(&[], &lines[1..]).check().is_ok());
    assert!(source(&[], &lines).check().unwrap_err().contains("more than 64 groups"));
}

/// The model: how specific a pattern that matches a path is, segment by segment; less is more
/// specific.
fn rank(pattern: &str, path: &[&str]) -> Option<Vec<u8>> {
    let pattern: Vec<&str> = pattern.split('/').filter(|segment| !segment.is_empty()).collect();
    let mut ranks = Vec::new();
    for (place, own) in pattern.iter().enumerate() {
        ranks.push(match (*own, path.get(place)) {
            ("*", _) => return Some([ranks, vec![2]].concat()),
            (own, Some(segment)) if own.starts_with('{') && !segment.is_empty() => 1,
            (own, Some(segment)) if own == *segment => 0,
            _ => return None,
        });
    }
    (pattern.len() == path.len()).then_some(ranks)
}

/// The model's decision for one reading of a path: compares each rule with each other.
fn model(rules: &[String], path: &[&str], user: Option<&str>, is_write: bool) -> bool {
    let split = |rule: &String| {
        let words: Vec<String> = rule.split(' ').map(str::to_owned).collect();
        (rank(&words[0], path), words)
    };
    let matching: Vec<_> =
        rules.iter().map(split).filter_map(|(rank, words)| Some((rank?, words))).collect();
    let mut deciding = matching
        .iter()
        .filter(|(rank, _)| matching.iter().all(|(other, _)| other >= rank))
        .peekable();
    deciding.peek().is_none()
        || deciding.any(|(_, words)| {
            (words[1] == "write" || !is_write)
                && match (&*words[2], user) {
                    ("anonymous", _) => true,
                    ("users", user) => user.is_some(),
                    ("group:g", user) => user == Some("ann"),
                    (name, user) => user == Some(name),
                }
        })
}

proptest! {
    #[test]
    fn decisions_equal_those_of_a_plain_model(
        rules in vec(
            ("(/(a|b|\\{x\\})){0,3}(/\\*)?", "read|write", "anonymous|users|group:g|ann|ben"),
            0..12,
        ),
        paths in vec("(/(a|b|c|)){1,4}", 1..12),
    ) {
        let rules: Vec<String> = rules
            .into_iter()
            .map(|(pattern, right, who)| match &*pattern {
                "" => format!("/ {right} {who}"),
                pattern => format!("{pattern} {right} {who}"),
            })
            .collect();
        let lines: Vec<&str> = rules.iter().map(String::as_str).collect();
        let table = table(&lines, &["g: ann"]);
        for path in &paths {
            let exact = path[1..].strip_suffix('/').unwrap_or(&path[1..]);
            let exact: Vec<&str> =
                if path == "/" { Vec::new() } else { exact.split('/').collect() };
            let collapsed: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
            for user in [None, Some("ann"), Some("ben")] {
                for (right, is_write) in [(Right::Read, false), (Right::Write, true)] {
                    let expected = model(&rules, &exact, user, is_write)
                        && model(&rules, &collapsed, user, is_write);
                    let decided = table.decide_path(path, right, table.client(user)).is_allowed;
                    prop_assert_eq!(decided, expected, "{} {:?} in {:?}", path, user, rules);
                }
            }
        }
    }
}

#[test]
fn folds_the_names_of_users_in_a_program_with_accounts() {
    let mut table = table(&["/a read ANN", "/b read group:g"], &["g: aNN"]);
    assert_eq!((readers(&table, "/a"), readers(&table, "/b")), (String::new(), String::new()));
    table.compare_names(NameComparison::Folded);
    assert_eq!(
        (readers(&table, "/a"), readers(&table, "/b")),
        ("ann".to_owned(), "ann".to_owned())
    );
    assert!(table.is_member("Ann", "g") && table.names_user("ANN"));
    assert!(table.client(Some("Ann")).user == table.client(Some("ann")).user);
    table.configure(source(&["/a read ben"], &[]), Vec::new());
    assert_eq!(readers(&table, "/a"), "ben");
    assert!(!table.names_user("ann") && table.names_user("Ben"));
}

/// A sign-up read all rules to know whether a rule names the new user.
#[test]
fn knows_the_users_that_rules_and_memberships_name() {
    let mut table = table(&["/a read ann", "/b write ann"], &["g: ann", "h: ben"]);
    let row = RowId::from_number;
    let rule = |line: &str| RightRule::parse_line(line).unwrap().remove(0);
    table.set_stored_rule(row(1), Some(rule("/c read ann")));
    table.set_stored_rule(row(2), Some(rule("/c read eva")));
    table.set_stored_member(row(3), Some(Membership::new("ida", "g").unwrap()));
    let named = |table: &RightsTable| -> Vec<&str> {
        ["ann", "ben", "eva", "ida", "users"]
            .into_iter()
            .filter(|name| table.names_user(name))
            .collect()
    };
    assert_eq!(named(&table), ["ann", "ben", "eva", "ida"]);
    table.set_stored_rule(row(2), None);
    table.set_stored_member(row(3), None);
    assert_eq!(named(&table), ["ann", "ben"]);
    table.configure(RuleSource::default(), Vec::new());
    assert_eq!(named(&table), ["ann"]);
    table.set_stored_rule(row(1), Some(rule("/c read users")));
    assert_eq!(named(&table), Vec::<&str>::new());
    assert!(table.users.by_key.is_empty());
}
