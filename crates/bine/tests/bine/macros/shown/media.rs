//! Images, video and embedded content.

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let (wide, narrow) = ("/wide.avif", "/narrow.jpg");
    html! {
        <figure>
            <picture>
                <source type="image/avif" srcset={wide} media="(width > 40em)">
                <img src={narrow} alt="A field of hops" width="640" height="480" loading="lazy">
            </picture>
            <figcaption>"A field"</figcaption>
        </figure>
        <video src="/film.webm" controls muted preload="none"><track src="/film.vtt" kind="captions" srclang="en"></video>
        <map name="parts"><area shape="rect" coords="0,0,9,9" href="/leaf" alt="Leaf"></map>
    }
}
