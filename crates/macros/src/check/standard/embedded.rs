//! Examples for images, audio, video, frames and maps (HTML 4.8).

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        anchor: "the-picture-element",
        right: &[
            r#"<picture><source media="(min-width: 45em)" srcset="l.jpg"><source media="(min-width: 32em)" srcset="m.jpg"><img src="s.jpg" alt="A wolf"></picture>"#,
            r#"<h1><picture><source srcset="a.webp" type="image/webp" width="10" height="20"><img src="a.jpg" alt="A" width="10" height="20"></picture></h1>"#,
            r#"<picture><template></template><img src="a" alt=""></picture>"#,
        ],
        wrong: &[
            (r#"<picture><source srcset="a"></picture>"#, "`<picture>` needs a `<img>`"),
            (
                r#"<picture><img src="a" alt=""><source srcset="b"></picture>"#,
                "`<source>` is out of order in `<picture>`",
            ),
            (
                r#"<picture><img src="a" alt=""><img src="b" alt=""></picture>"#,
                "`<img>` belongs in `<picture>` only once",
            ),
            (
                r#"<picture><p>t</p><img src="a" alt=""></picture>"#,
                "`<p>` is not allowed in `<picture>`",
            ),
            (
                r#"<picture>"text"<img src="a" alt=""></picture>"#,
                "no text is allowed in `<picture>`",
            ),
            (
                r#"<ul><picture><img src="a" alt=""></picture></ul>"#,
                "`<picture>` is not allowed in `<ul>`",
            ),
        ],
    },
    Page {
        anchor: "the-source-element",
        right: &[
            r#"<video controls><source src="v.mp4" type="video/mp4"><source src="v.ogv" type="video/ogg"></video>"#,
            r#"<audio controls><source src="a.oga" type="audio/ogg; codecs=flac"></audio>"#,
            r#"<picture><source srcset="a.png 1x, b.png 2x" sizes="50vw"><img src="c" alt=""></picture>"#,
        ],
        wrong: &[
            (
                r#"<video src="a"><source src="b"></video>"#,
                "`<source>` is for a `<video>` without `src`",
            ),
            (
                r#"<audio src="a"><source src="b"></audio>"#,
                "`<source>` is for a `<audio>` without `src`",
            ),
            (
                r#"<picture><source src="a"><img src="b" alt=""></picture>"#,
                "`<source>` needs `srcset` in `<picture>`",
            ),
            (
                r#"<video><source srcset="a"></video>"#,
                "`<source>` needs `src` in `<audio>` or `<video>`",
            ),
            (
                r#"<audio><source type="audio/ogg"></audio>"#,
                "`<source>` needs `src` in `<audio>` or `<video>`",
            ),
            (
                r#"<p><source src="a"></p>"#,
                "`<source>` is not allowed in `<p>`: `<source>` belongs in `<audio>`, `<picture>`, `<template>`, `<video>`",
            ),
        ],
    },
    Page {
        anchor: "the-img-element",
        right: &[
            r#"<p>I lived in <img src="carouge.svg" alt=""> Carouge</p>"#,
            r#"<img src="1.jpeg" alt="1" loading="lazy" decoding="async" fetchpriority="high">"#,
            r#"<img sizes="(max-width: 30em) 100vw, 50vw" srcset="a.jpg 200w, b.jpg 400w" src="a.jpg" alt="The rad wolf">"#,
            r##"<img src="shapes.png" usemap="#shapes" alt="Four shapes" width="100" height="50" crossorigin="anonymous">"##,
            r#"<a href="green.html"><img src="green.jpeg" alt="Green" ismap></a>"#,
            r#"<button name="rgb"><img src="red" alt="RGB"><img src="green" alt=""></button>"#,
            r#"<h1><img src="logo.png" alt={company}></h1>"#,
        ],
        wrong: &[
            (r#"<img src="a.png">"#, "`<img>` needs `alt`, a text alternative"),
            (r#"<img alt="">"#, "`<img>` needs `src`"),
            (
                r#"<img src="a" alt="" width="100px">"#,
                "`width` takes a whole number that is not negative",
            ),
            (r#"<img src="a" alt="" loading="later">"#, "`loading` takes"),
            (
                r#"<img src="a" alt="" decoding="fast">"#,
                "`decoding` takes one of `async`, `auto`, `sync`",
            ),
            (r#"<img src="a" alt="" usemap="shapes">"#, "`usemap` takes a name after a `#`"),
            (
                r##"<a href="/"><img src="a" alt="" usemap="#m"></a>"##,
                "`<img>` is not allowed inside `<a>`, which allows no content that is interactive",
            ),
            (
                r#"<button><img src="a" alt="" controls></button>"#,
                "`<img>` is not allowed inside `<button>`",
            ),
            (r#"<img src="a" alt="" border="0">"#, "`border` is no longer part of HTML"),
            (r#"<img src="a" alt="" longdesc="b">"#, "`longdesc` is no longer part of HTML"),
            (r#"<img src="a" alt="" scr="b">"#, "did you mean"),
            (r#"<image src="a"></image>"#, "HTML has no element `<image>`"),
        ],
    },
    Page {
        anchor: "the-iframe-element",
        right: &[
            r#"<iframe src="https://ads.example.com/" width="468" height="60" title="Ad"></iframe>"#,
            r#"<iframe sandbox src="a"></iframe><iframe sandbox="allow-same-origin allow-forms" src="b"></iframe>"#,
            r#"<iframe src="https://maps.example.com/" allow="geolocation" allowfullscreen loading="lazy" referrerpolicy="origin" name="map"></iframe>"#,
        ],
        wrong: &[
            (
                r#"<p itemscope><iframe itemprop="map"></iframe></p>"#,
                "`<iframe>` needs `src` beside `itemprop`",
            ),
            (
                r#"<iframe src="a">text</iframe>"#,
                "no text is allowed in `<iframe>`: it takes nothing",
            ),
            ("<iframe><p>t</p></iframe>", "`<p>` is not allowed in `<iframe>`"),
            (r#"<iframe sandbox="allow-all"></iframe>"#, "`sandbox` takes any of"),
            (r#"<iframe frameborder="0"></iframe>"#, "`frameborder` is no longer part of HTML"),
            (r#"<iframe scrolling="no"></iframe>"#, "`scrolling` is no longer part of HTML"),
            (r#"<iframe width="100%"></iframe>"#, "`width` takes a whole number"),
            (r#"<a href="/"><iframe></iframe></a>"#, "`<iframe>` is not allowed inside `<a>`"),
        ],
    },
    Page {
        anchor: "the-embed-element",
        right: &[
            r#"<embed src="catgame.swf" type="application/x-game" width="10" height="10">"#,
            r#"<p><embed src="a" "quality"="high"></p>"#,
        ],
        wrong: &[
            (r#"<button><embed src="a"></button>"#, "`<embed>` is not allowed inside `<button>`"),
            (r#"<embed src="a" align="left">"#, "`align` is no longer part of HTML"),
            (r#"<embed src="a" height="tall">"#, "`height` takes"),
        ],
    },
    Page {
        anchor: "the-object-element",
        right: &[
            r#"<figure><object data="clock.html"></object><figcaption>My clock</figcaption></figure>"#,
            r#"<object data="a.pdf" type="application/pdf" width="10" height="10" name="n" form="f"><p><a href="a.pdf">t</a></p></object>"#,
            r#"<p><object data="a">text <b>instead</b></object></p>"#,
        ],
        wrong: &[
            (r#"<object type="image/png"></object>"#, "`<object>` needs `data`"),
            (
                r#"<object data="a"><param name="b"></object>"#,
                "`<param>` is no longer part of HTML",
            ),
            (r#"<p><object data="a"><p>t</p></object></p>"#, "`<p>` is not allowed in `<object>`"),
            (r#"<object data="a" classid="b"></object>"#, "`classid` is no longer part of HTML"),
            (
                r#"<object data="a" typemustmatch="b"></object>"#,
                "`typemustmatch` is no longer part of HTML",
            ),
        ],
    },
    Page {
        anchor: "the-video-element",
        right: &[
            r#"<video src="a.webm" controls autoplay loop muted playsinline poster="a.png" preload="none" width="640" height="360"></video>"#,
            r#"<video controls crossorigin><source src="a"><track kind="captions" src="c.vtt" srclang="en" label="English" default><p>Get it <a href="a">here</a></p></video>"#,
            r#"<p><video src="a">text</video></p>"#,
            r#"<a href="/"><video src="a"></video></a>"#,
        ],
        wrong: &[
            (
                r#"<p itemscope><video itemprop="film"></video></p>"#,
                "`<video>` needs `src` beside `itemprop`",
            ),
            (
                r#"<video src="a"><audio src="b"></audio></video>"#,
                "`<audio>` is not allowed inside `<video>`",
            ),
            (
                r#"<video><p>t</p><source src="a"></video>"#,
                "`<source>` is out of order in `<video>`: the order is `<source>`, then `<track>`, then the rest",
            ),
            (
                r#"<video><track src="a" srclang="en"><source src="b"></video>"#,
                "`<source>` is out of order in `<video>`",
            ),
            (r#"<video preload="all"></video>"#, "`preload` takes"),
            (r#"<video controls="true"></video>"#, "`controls` takes no value"),
            ("<p><video><div>t</div></video></p>", "`<div>` is not allowed in `<video>`"),
            ("<ul><video></video></ul>", "`<video>` is not allowed in `<ul>`"),
        ],
    },
    Page {
        anchor: "the-audio-element",
        right: &[
            r#"<audio src="a.oga" controls></audio>"#,
            r#"<p><audio controls preload="metadata" loop><source src="a"> no sound</audio></p>"#,
        ],
        wrong: &[
            ("<audio><b><video></video></b></audio>", "`<video>` is not allowed inside `<audio>`"),
            (r#"<audio width="10"></audio>"#, "`<audio>` has no attribute `width`"),
            (r#"<audio crossorigin="all"></audio>"#, "`crossorigin` takes"),
            (
                "<button><audio controls></audio></button>",
                "`<audio>` is not allowed inside `<button>`",
            ),
        ],
    },
    Page {
        anchor: "the-track-element",
        right: &[
            r#"<video><track kind={kind} src="a"></video>"#,
            r#"<video src="brave.webm"><track kind="subtitles" src="en.vtt" srclang="en" label="English"><track kind="chapters" src="ch.vtt"></video>"#,
        ],
        wrong: &[
            (
                r#"<video><track src="a"></video>"#,
                "`<track>` needs `srclang` where `kind` is not one of `captions`",
            ),
            (r#"<video><track kind="subtitles" src="a"></video>"#, "`<track>` needs `srclang`"),
            (r#"<video><track kind="captions"></video>"#, "`<track>` needs `src`"),
            (r#"<video><track kind="subtitle" src="a"></video>"#, "did you mean `subtitles`?"),
            (
                r#"<video><track src="a" srclang="en_US"></video>"#,
                "`srclang` takes the tag of a language",
            ),
            (
                r#"<picture><track src="a" kind="chapters"><img src="a" alt=""></picture>"#,
                "`<track>` is not allowed in `<picture>`",
            ),
        ],
    },
    Page {
        anchor: "the-map-element",
        right: &[
            r#"<map name="shapes"><p><a href="red">Red box</a> <area shape="rect" coords="50,50,100,100"></p></map>"#,
            r#"<p><map name="nav"><area href="/" alt="Home" coords="0,0,9,9"></map></p>"#,
        ],
        wrong: &[
            (r#"<map><area shape="default"></map>"#, "`<map>` needs `name`"),
            (r#"<p><map name="a"><div>t</div></map></p>"#, "`<div>` is not allowed in `<map>`"),
        ],
    },
    Page {
        anchor: "the-area-element",
        right: &[
            r#"<map name="m"><area shape="circle" coords="200,75,50" href="green" alt="Green circle" target="_self" download="a" ping="/p" rel="tag" referrerpolicy="origin"></map>"#,
            r#"<map name="m"><area shape="default"><area shape="poly" coords="1,1,2,2,3,3" href={to} alt={words}></map>"#,
        ],
        wrong: &[
            (
                r#"<map name="m"><area href="/" alt="t"></map>"#,
                "`<area>` needs `coords` where `shape` is not `default`",
            ),
            (
                r#"<map name="m"><area shape="default" coords="1,1,2,2"></map>"#,
                "`<area>` has `coords` only where `shape` is not `default`",
            ),
            (
                r#"<map name="m"><area shape="default" target="a"></map>"#,
                "`<area>` has `target` only beside `href`",
            ),
            (
                r#"<map name="m"><area href="/" shape="default"></map>"#,
                "`<area>` needs `alt` beside `href`",
            ),
            (
                r#"<map name="m"><area alt="t" shape="default"></map>"#,
                "`<area>` has `alt` only beside `href`",
            ),
            (r#"<map name="m"><area shape="oval"></map>"#, "`shape` takes one of"),
            (
                r#"<map name="m"><area nohref coords="1,1,2"></map>"#,
                "`nohref` is no longer part of HTML",
            ),
            (
                r#"<map name="m"><area href="/" alt="a" hreflang="en" shape="default"></map>"#,
                "`hreflang` is no longer part of HTML",
            ),
            (
                r#"<html lang="en"><body><p><area shape="default"></p></body></html>"#,
                "`<area>` belongs inside `<map>`, `<template>`",
            ),
        ],
    },
    Page {
        anchor: "mathml",
        right: &[
            r#"<p>So <math display="block"><mfrac><mi>a</mi><mn>2</mn></mfrac></math></p>"#,
            r#"<math><semantics><mi>x</mi><annotation-xml encoding="text/html"><p>t</p></annotation-xml></semantics></math>"#,
        ],
        wrong: &[
            ("<math><frac></frac></math>", "did you mean `<mfrac>`?"),
            (
                r#"<math><mi varint="a">x</mi></math>"#,
                "no element of `<math>` has the attribute `varint`",
            ),
            ("<ul><math></math></ul>", "`<math>` is not allowed in `<ul>`"),
        ],
    },
    Page {
        anchor: "svg-0",
        right: &[
            r#"<p><svg viewBox="0 0 10 10" role="img" aria-label="A dot"><circle cx="5" cy="5" r="4" fill="red" /></svg></p>"#,
            r#"<svg><a href="/"><text>t</text></a><foreignObject><p>t</p></foreignObject><title>t</title></svg>"#,
        ],
        wrong: &[
            (r#"<svg viewbox="0 0 1 1"></svg>"#, "did you mean `viewBox`?"),
            ("<svg><lineargradient /></svg>", "did you mean `<linearGradient>`?"),
            (r#"<svg><rect widht="1" /></svg>"#, "did you mean `width`?"),
            ("<svg><foreignObject><dvi></dvi></foreignObject></svg>", "did you mean `<div>`?"),
            ("<ul><svg></svg></ul>", "`<svg>` is not allowed in `<ul>`"),
        ],
    },
];
