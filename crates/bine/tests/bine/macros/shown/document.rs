//! A complete document.

use bine::{Page, html, raw};

pub(super) fn page() -> impl Page {
    let title = "Hops & bines";
    html! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8">
                <title>{title}</title>
                <link rel="stylesheet" href="/style.css"/>
                <style>"p > b { color: green }"</style>
                <script>"if (1 < 2 && 3 > 2) {"{raw("run('now')")}"}"</script>
            </head>
            <body>
                // Rust comments are not part of the page.
                <h1>{title}</h1> /* like this one */
                <p>Line<br>break, <em>then</em> more.</p>
                <img src="/hop.svg" alt="">
                <script src="/a.js" r#async defer></script>
            </body>
        </html>
    }
}
