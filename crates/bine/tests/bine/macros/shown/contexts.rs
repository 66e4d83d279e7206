//! Values in attributes that a browser follows, fetches or executes.

use bine::{Page, html, raw};

pub(super) fn page() -> impl Page {
    let (mine, hostile, drawing) =
        ("/a?b&c", " JavaScript:alert('1')", "data:image/png;base64,AA==");
    let none: Option<&str> = None;
    html! {
        <a href={mine}>a</a> <a href={hostile}>b</a> <a href={drawing}>c</a> <a href={none}>d</a>
        <a href={format_args!("{}{}", "java", "script:x")}>e</a> <a href={format_args!("/{hostile}")}>f</a>
        <a href={raw("javascript:back(\"now\")")} onclick={raw("go('now')")}>g</a>
        <img src={drawing} alt=""> <img src={hostile} alt=""> <iframe src={drawing}></iframe>
        <form action={hostile}><button formaction={mine} style={raw("color: \"red\"")}>h</button></form>
        <svg><a xlink:href={hostile}>i</a><image href={drawing}/></svg>
        <p title={hostile} data-next={hostile}>j</p>
    }
}
