//! Comments, which are not sent: those of Rust between text, attributes and elements, and those of
//! HTML.

use bine::{Page, Tree};

/// The same markup for both macros.
macro_rules! markup {
    ($macro:ident, $class:expr) => {
        bine::$macro! {
            <!-- The <b>first</b> thing, {missing} and (so on) -->
            <!DOCTYPE html>
            <html lang="en"> // The language.
                <head><title>Comments /* "not" shown */ here</title></head>
                <!-- <body class="old"> -->
                <body
                    class="new" // Don't show this, {either}.
                    /* <p id="b"> */ id={$class}
                >
                    <p>one<!-- a -->two<!----> three <!-- b
                        c --> four
                        <!-- d -->
                        five /* six */ seven // eight
                        nine</p>
                    {for a in [1, 2] {
                        // In a loop.
                        <!-- In a loop. -->
                        <i title=/* between */"t">{a /* in a hole */}</i>
                    }}
                </body>
            </html>
        }
    };
}

pub(super) fn page() -> impl Page {
    markup!(html, "x")
}

pub(super) fn tree() -> Tree {
    markup!(tree, "x")
}
