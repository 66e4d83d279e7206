//! The page of twenty values, for servers in Rust.

/// The teams, each with the person on call.
const DUTIES: [(&str, &str); 10] = [
    ("Roads & bridges", "Ann"),
    ("Water", "Bob O'Neill"),
    ("Light", "Cecilia"),
    ("Post < 2 kg", "Dora"),
    ("Telegraph", "Emil \"Em\" Berg"),
    ("Harbor", "Frida"),
    ("Forests", "Gustav"),
    ("Schools", "Hanna"),
    ("Archive & library", "Ivar"),
    ("Fire", "Jo"),
];

/// The page, with the bytes of Bine's example `values`.
pub(crate) fn values_page() -> String {
    let mut page = String::with_capacity(1024);
    page.push_str("<h1>On duty</h1><p>Whom to call this week, and for what. A name that is missing here has the week off.</p><table><tr><th>Team</th><th>Person</th></tr>");
    for (team, person) in DUTIES {
        page.push_str("<tr><td class=\"team\">");
        escape_value(team, &mut page);
        page.push_str("</td><td class=\"person\">");
        escape_value(person, &mut page);
        page.push_str("</td></tr>");
    }
    page.push_str("</table><p>If nobody answers within ten minutes, call the next one on this list; it goes round from the top.</p>");
    page
}

fn escape_value(mut text: &str, out: &mut String) {
    while let Some(at) = text.find(['&', '<', '>', '"', '\'']) {
        out.push_str(&text[..at]);
        out.push_str(match text.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        });
        text = &text[at + 1..];
    }
    out.push_str(text);
}
