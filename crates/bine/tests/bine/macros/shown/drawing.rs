//! A drawing in SVG and a formula in MathML.

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let radius = 4;
    html! {
        <svg viewBox="0 0 10 10" role="img">
            <title>A dot</title>
            <circle cx="5" cy="5" r={radius} stroke-width="0.5"/>
            {for x in [1, 9] { <path d={format_args!("M{x} 0V10")} fill="none"/> }}
            <foreignObject width="4" height="4"><p>"in HTML"</p></foreignObject>
        </svg>
        <math display="block"><mfrac><mi>a</mi><mn>{2}</mn></mfrac></math>
    }
}
