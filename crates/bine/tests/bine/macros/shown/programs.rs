//! Scripts and styles, which are not escaped, and data for scripts.

use bine::{Page, html, raw};

pub(super) fn page() -> impl Page {
    let (name, limit) = ("</script><b>", raw("7"));
    html! {
        <p id="who" data-name={name}></p>
        <script>"if (1 < 2 && who.dataset.name) limit = "{limit}";"</script>
        <script type="module" src="/app.js" defer></script>
        <style>"p > b { color: red }"</style>
        <noscript><p>"Without a program too."</p></noscript>
    }
}
