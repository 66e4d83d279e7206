//! Handler arguments from the query, and the messages for wrong ones.

use crate::app::{on_each_scheduler, start};

#[test]
fn reads_each_type_of_argument() {
    let program = start(&[]);
    let mut peer = program.connect();
    let all = "text=a%20b&small=255&sign=-7&ratio=1.5&letter=%C3%A4&flag=on";
    assert_eq!(peer.get(&format!("/kinds?{all}")).text(), "a b 255 -7 1.5 \u{e4} yes ");
    let reply = peer.get(&format!("/kinds?maybe=9&other=x&{all}&text=second"));
    assert_eq!(reply.text(), "a b 255 -7 1.5 \u{e4} yes 9");
}

#[test]
fn names_wrong_argument_and_reason() {
    let program = start(&[]);
    let mut peer = program.connect();
    let right = [
        ("text", "a"),
        ("small", "1"),
        ("sign", "1"),
        ("ratio", "1"),
        ("letter", "a"),
        ("flag", "1"),
        ("maybe", "1"),
    ];
    let cases = [
        ("text=%FF", "`text` is not encoded UTF-8 text\n"),
        ("small=256", "`small` must be a whole number from 0 to 255, not `256`\n"),
        ("small=", "`small` must be a whole number from 0 to 255, not ``\n"),
        ("sign=1.5", "`sign` must be a whole number, not `1.5`\n"),
        ("ratio=much", "`ratio` must be a number, not `much`\n"),
        ("letter=ab", "`letter` must be one character\n"),
        ("flag=maybe", "`flag` must be true or false, not `maybe`\n"),
        ("maybe=-1", "`maybe` must be a whole number from 0 to 65535, not `-1`\n"),
        ("small", "`small` must be a whole number from 0 to 255, not ``\n"),
        ("s%6Dall=x", "`small` must be a whole number from 0 to 255, not `x`\n"),
    ];
    for (wrong, told) in cases {
        // The first field of a name counts.
        let rest = right.map(|(name, value)| format!("&{name}={value}")).concat();
        let reply = peer.get(&format!("/kinds?{wrong}{rest}"));
        assert_eq!((reply.status(), reply.text()), (400, told), "{wrong}");
        assert_eq!(reply.header("Content-Type"), Some("text/plain; charset=utf-8"));
    }
    for (missing, _) in right {
        let rest = right.iter().filter(|(name, _)| *name != missing);
        let query: Vec<String> = rest.map(|(name, value)| format!("{name}={value}")).collect();
        let reply = peer.get(&format!("/kinds?{}", query.join("&")));
        let told = format!("`{missing}` is missing from the query\n");
        let expected = match missing {
            "maybe" => (200, "a 1 1 1 a yes "),
            // An unchecked box.
            "flag" => (200, "a 1 1 1 a no 1"),
            _ => (400, &*told),
        };
        assert_eq!((reply.status(), reply.text()), expected);
    }
}

#[test]
fn reports_argument_after_a_thousand_fields() {
    let program = start(&[]);
    let mut peer = program.connect();
    let all = "text=a&small=1&sign=1&ratio=1&letter=a&flag=on";
    let reply = peer.get(&format!("/kinds?{all}{}&maybe=7", "&x".repeat(994)));
    let told = "`maybe` is not among the first 1000 fields of the query: send fewer\n";
    assert_eq!((reply.status(), reply.text()), (400, told));
    let reply = peer.get(&format!("/kinds?{all}{}&maybe=7", "&x".repeat(993)));
    assert_eq!(reply.text(), "a 1 1 1 a yes 7");
}

#[test]
fn missing_argument_is_400_on_each_scheduler() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for target in ["/hello", "/hello/plain", "/hello?", "/hello?nam=a", "/hello?name2=a"] {
            let reply = peer.get(target);
            let expected = (400, "`name` is missing from the query\n");
            assert_eq!((reply.status(), reply.text()), expected, "{target}");
        }
        assert_eq!(peer.get("/hello?name=a").text(), "<h1>Hello a</h1>");
    });
}

#[test]
fn accepts_argument_of_maximum_target_length() {
    on_each_scheduler(|program| {
        let name = "n".repeat(8 * 1024 - "/hello/plain?name=".len());
        let expected = format!("<h1>Hello {name}</h1>");
        let mut peer = program.connect();
        assert_eq!(peer.get(&format!("/hello?name={name}")).text(), expected);
        assert_eq!(peer.get(&format!("/hello/plain?name={name}")).text(), expected);
    });
}

#[test]
fn passes_any_method_to_handler_that_takes_request() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for method in ["GET", "POST", "DELETE", "PATCH", "OPTIONS"] {
            peer.send(format!("{method} /method?a=%20b HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(peer.reply().text(), format!("{method} /method?a=%20b"));
        }
    });
}
