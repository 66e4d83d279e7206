//! Corrections by hand: facts that the sources lack, or that differ from the standard, with the
//! section of the standard.

/// Replacements for elements that the standard has removed (HTML 16.2).
pub(super) const ELEMENTS: &[(&str, &str)] = &[
    ("acronym", "use `abbr`"),
    ("applet", "use `embed` or `object`"),
    ("basefont", "use CSS `font`"),
    ("bgsound", "use `audio`"),
    ("big", "use CSS `font-size`"),
    ("blink", "use CSS `animation`"),
    ("center", "use CSS `text-align` or `margin`"),
    ("dir", "use `ul`"),
    ("font", "use CSS `font` and `color`"),
    ("frame", "use `iframe`"),
    ("frameset", "use `iframe` or CSS"),
    ("isindex", "use `form` and `input`"),
    ("keygen", "use the Web Cryptography API"),
    ("listing", "use `pre` and `code`"),
    ("marquee", "use CSS `animation`"),
    ("menuitem", "answer the event `contextmenu` with a script"),
    ("multicol", "use CSS `columns`"),
    ("nextid", "use `id`"),
    ("nobr", "use CSS `white-space`"),
    ("noembed", "use `object`, with what stands in for it inside"),
    ("noframes", "use `iframe`"),
    ("param", "use the attribute `data` of `object`"),
    ("plaintext", "use `pre`"),
    ("rb", "put its text into `ruby` directly"),
    ("rtc", "put one `ruby` into another"),
    ("spacer", "use CSS `margin` or `padding`"),
    ("strike", "use `del` or `s`"),
    ("tt", "use `code`, `kbd`, `samp` or `var`"),
    ("xmp", "use `pre` and `code`"),
];

/// Replacements for attributes that the standard has removed (HTML 16.2); no element: of every
/// element.
pub(super) const ATTRIBUTES: &[(&str, &str, &str)] = &[
    ("", "abbr", "use `th`"),
    ("", "accept", "put it on the `input`"),
    ("", "align", "use CSS `text-align`, `float` or `margin`"),
    ("", "alink", "use CSS `color` with `:active`"),
    ("", "allowtransparency", "leave it out"),
    ("", "archive", "use `data` and `type`"),
    ("", "axis", "use `scope` on the `th`"),
    ("", "background", "use CSS `background-image`"),
    ("", "bgcolor", "use CSS `background-color`"),
    ("", "border", "use CSS `border`"),
    ("", "bordercolor", "use CSS `border-color`"),
    ("", "bottommargin", "use CSS `margin`"),
    ("", "cellpadding", "use CSS `padding` of `td` and `th`"),
    ("", "cellspacing", "use CSS `border-spacing`"),
    ("", "char", "leave it out"),
    ("", "charoff", "leave it out"),
    ("", "charset", "leave it out; the other resource says it in its own head"),
    ("", "classid", "use `data` and `type`"),
    ("", "clear", "use CSS `clear`"),
    ("", "code", "use `data` and `type`"),
    ("", "codebase", "use `data` and `type`"),
    ("", "codetype", "use `data` and `type`"),
    ("", "color", "use CSS `color`"),
    ("", "compact", "use CSS `margin`"),
    ("", "contextmenu", "answer the event `contextmenu` with a script"),
    ("", "coords", "use `area`"),
    ("", "datafld", "leave it out"),
    ("", "dataformatas", "leave it out"),
    ("", "datapagesize", "leave it out"),
    ("", "datasrc", "leave it out"),
    ("", "declare", "repeat the `object`"),
    ("", "event", "use `addEventListener` in the script"),
    ("", "for", "use `addEventListener` in the script"),
    ("", "frame", "use CSS `border`"),
    ("", "frameborder", "use CSS `border`"),
    ("", "framespacing", "leave it out"),
    ("", "height", "use CSS `height`"),
    ("", "hreflang", "leave it out"),
    ("", "hspace", "use CSS `margin`"),
    ("", "ismap", "leave it out"),
    ("", "label", "leave it out"),
    ("", "language", "leave it out; `type` says it, if need be"),
    ("", "leftmargin", "use CSS `margin`"),
    ("", "link", "use CSS `color` with `:link`"),
    ("", "longdesc", "link to the description with `a`"),
    ("", "lowsrc", "use a progressive image in `src`"),
    ("", "manifest", "use a service worker"),
    ("", "marginbottom", "use CSS `margin`"),
    ("", "marginheight", "use CSS `margin`"),
    ("", "marginleft", "use CSS `margin`"),
    ("", "marginright", "use CSS `margin`"),
    ("", "margintop", "use CSS `margin`"),
    ("", "marginwidth", "use CSS `margin`"),
    ("", "methods", "leave it out"),
    ("", "name", "use `id`"),
    ("", "nohref", "leave `href` out"),
    ("", "noshade", "use CSS `border`"),
    ("", "nowrap", "use CSS `white-space`"),
    ("", "profile", "leave it out"),
    ("", "rev", "use `rel` with the opposite word"),
    ("", "rightmargin", "use CSS `margin`"),
    ("", "rules", "use CSS `border`"),
    ("", "scheme", "make it part of `content`"),
    ("", "scope", "use `th`"),
    ("", "scrolling", "use CSS `overflow`"),
    ("", "shape", "use `area`"),
    ("", "size", "use CSS `height`"),
    ("", "standby", "leave it out"),
    ("", "summary", "use `caption`"),
    ("", "target", "leave it out"),
    ("", "text", "use CSS `color`"),
    ("", "topmargin", "use CSS `margin`"),
    ("area", "type", "leave it out"),
    ("menu", "type", "leave it out"),
    ("style", "type", "leave it out"),
    ("", "type", "use CSS `list-style-type`"),
    ("", "typemustmatch", "leave it out"),
    ("", "urn", "use `href`"),
    ("", "usemap", "use `img`"),
    ("", "valign", "use CSS `vertical-align`"),
    ("", "version", "leave it out"),
    ("", "vlink", "use CSS `color` with `:visited`"),
    ("", "vspace", "use CSS `margin`"),
    ("", "width", "use CSS `width`"),
];

/// Attributes that the standard has removed although no source marks them (HTML 16.2).
pub(super) const OBSOLETE: &[(&str, &str)] = &[
    ("area", "hreflang type"),
    ("body", "bottommargin leftmargin rightmargin topmargin"),
    ("embed", "hspace vspace"),
    ("html", "manifest"),
    ("iframe", "framespacing"),
    ("input", "border"),
    ("menu", "label type"),
    ("object", "typemustmatch"),
    ("select", "datafld dataformatas datasrc"),
    ("table", "height"),
    ("tbody", "height"),
    ("td", "abbr"),
    ("tfoot", "height"),
    ("thead", "height"),
    ("tr", "height"),
];

/// Attributes that html-validate gives to elements that do not have them.
pub(super) const NOT_ON: &[(&str, &str)] = &[("object", "blocking")];

/// The values of `type` with which an attribute may be used (HTML 4.10.5.1, "content attributes").
pub(super) const TYPES: &[(&str, &str, &str)] = &[
    ("input", "accept", "file"),
    ("input", "alpha", "color"),
    ("input", "alt", "image"),
    ("input", "capture", "file"),
    ("input", "checked", "checkbox radio"),
    ("input", "colorspace", "color"),
    ("input", "dirname", "email hidden password search submit tel text url"),
    ("input", "formaction", "image submit"),
    ("input", "formenctype", "image submit"),
    ("input", "formmethod", "image submit"),
    ("input", "formnovalidate", "image submit"),
    ("input", "formtarget", "image submit"),
    ("input", "height", "image"),
    (
        "input",
        "list",
        "color date datetime-local email month number range search tel text time url week",
    ),
    ("input", "max", "date datetime-local month number range time week"),
    ("input", "maxlength", "email password search tel text url"),
    ("input", "min", "date datetime-local month number range time week"),
    ("input", "minlength", "email password search tel text url"),
    ("input", "multiple", "email file"),
    ("input", "pattern", "email password search tel text url"),
    ("input", "placeholder", "email number password search tel text url"),
    ("input", "popovertarget", "button image reset submit"),
    ("input", "popovertargetaction", "button image reset submit"),
    (
        "input",
        "readonly",
        "date datetime-local email month number password search tel text time url week",
    ),
    (
        "input",
        "required",
        "checkbox date datetime-local email file month number password radio search tel text time url week",
    ),
    ("input", "size", "email password search tel text url"),
    ("input", "src", "image"),
    ("input", "step", "date datetime-local month number range time week"),
    ("input", "width", "image"),
];

/// Further attributes with which an element is interactive; html-validate lacks them (HTML
/// 3.2.5.2.7).
pub(super) const GIVEN: &[(&str, &str)] = &[("img", "controls")];

/// Kinds of attributes that are missing from the sources or wrong in them; `*`: of every element.
pub(super) const KINDS: &[(&str, &str, &str, &str)] = &[
    ("*", "contenteditable", "WordsOrNone", "false plaintext-only true"),
    ("*", "lang", "Language", ""),
    ("*", "role", "Roles", ""),
    ("*", "style", "Style", ""),
    ("*", "virtualkeyboardpolicy", "Words", "auto manual"),
    // The XHTML part of polyglot markup repeats the language.
    ("*", "xml:lang", "Language", ""),
    ("a", "hreflang", "Language", ""),
    ("audio", "loading", "Words", "eager lazy"),
    ("base", "target", "WordsOrText", "_blank _parent _self _top"),
    // Unlike for other elements, one of the two is required.
    ("bdo", "dir", "Words", "ltr rtl"),
    ("button", "formenctype", "Words", ENCTYPES),
    ("col", "span", "Positive", ""),
    ("colgroup", "span", "Positive", ""),
    ("del", "datetime", "Moment", "date global"),
    ("form", "accept-charset", "Words", "utf-8"),
    ("html", "lang", "Language", ""),
    ("iframe", "loading", "Words", "eager lazy"),
    ("iframe", "sandbox", "WordList", SANDBOX),
    ("iframe", "srcdoc", "Text", ""),
    ("img", "usemap", "Fragment", ""),
    ("input", "formenctype", "Words", ENCTYPES),
    ("input", "formmethod", "Words", "dialog get post"),
    ("input", "size", "Positive", ""),
    ("ins", "datetime", "Moment", "date global"),
    ("link", "hreflang", "Language", ""),
    ("marquee", "loop", "Integer", ""),
    ("meta", "http-equiv", "Words", HTTP_EQUIV),
    // Part of RDFa, not of HTML, but other sites read it when they show a link to this one (Open
    // Graph).
    ("meta", "property", "Text", ""),
    ("meter", "value", "Number", ""),
    ("object", "form", "Id", ""),
    // The value may be negative, which html-validate rejects.
    ("ol", "start", "Integer", ""),
    ("script", "type", "WordsOrText", "importmap module speculationrules"),
    ("select", "size", "Positive", ""),
    ("style", "blocking", "WordList", "render"),
    ("td", "colspan", "Positive", ""),
    ("textarea", "cols", "Positive", ""),
    ("textarea", "rows", "Positive", ""),
    ("th", "colspan", "Positive", ""),
    ("time", "datetime", "Moment", "date duration global local month time week year yearless zone"),
    ("track", "srclang", "Language", ""),
    ("video", "loading", "Words", "eager lazy"),
];

const ENCTYPES: &str = "application/x-www-form-urlencoded multipart/form-data text/plain";
const SANDBOX: &str = "allow-downloads allow-forms allow-modals allow-orientation-lock allow-pointer-lock allow-popups \
    allow-popups-to-escape-sandbox allow-presentation allow-same-origin allow-scripts allow-top-navigation \
    allow-top-navigation-by-user-activation allow-top-navigation-to-custom-protocols";
const HTTP_EQUIV: &str =
    "content-security-policy content-type default-style refresh x-ua-compatible";

/// Members of interfaces that are not attributes, although they change an element.
pub(super) const MEMBERS: &[&str] = &[
    "caption",
    "defaultvalue",
    "encoding",
    "hash",
    "host",
    "hostname",
    "innertext",
    "length",
    "outertext",
    "password",
    "pathname",
    "port",
    "protocol",
    "search",
    "selected",
    "selectedindex",
    "text",
    "tfoot",
    "thead",
    "username",
    "value",
];

/// Attributes one of which is required (HTML 4, "must be present" or "must be specified").
pub(super) const REQUIRED: &[(&str, &str)] = &[
    ("base", "href target"),
    ("bdo", "dir"),
    ("data", "value"),
    // The standard has exceptions; a page that needs one writes `alt=""`.
    ("img", "alt"),
    ("link", "href imagesrcset"),
    ("link", "itemprop rel"),
    ("meta", "charset http-equiv itemprop name property"),
    ("meter", "value"),
    ("object", "data"),
];

/// Attributes that are required if a second attribute is present, or has or lacks one of some
/// values; no element: of any.
pub(super) const NEEDED: &[(&str, &str, When)] = &[
    ("a", "href", When::There("itemprop")),
    ("area", "alt", When::There("href")),
    ("area", "coords", When::HasNot("shape", "default")),
    ("area", "href", When::There("itemprop")),
    ("audio", "src", When::There("itemprop")),
    ("embed", "src", When::There("itemprop")),
    ("iframe", "src", When::There("itemprop")),
    ("input", "alt", When::Has("type", "image")),
    ("input", "src", When::Has("type", "image")),
    ("link", "as", When::Has("rel", "preload")),
    ("meta", "content", When::There("http-equiv")),
    ("meta", "content", When::There("itemprop")),
    ("meta", "content", When::There("name")),
    ("meta", "content", When::There("property")),
    // The default kind is subtitles.
    ("track", "srclang", When::HasNot("kind", "captions chapters descriptions metadata")),
    ("video", "src", When::There("itemprop")),
];

/// Attributes that are allowed only under a condition.
pub(super) const ONLY: &[(&str, &str, When)] = &[
    ("", "itemid", When::There("itemtype")),
    ("", "itemref", When::There("itemscope")),
    ("", "itemtype", When::There("itemscope")),
    ("a", "download hreflang ping referrerpolicy rel target type", When::There("href")),
    ("area", "alt download ping referrerpolicy rel target", When::There("href")),
    ("area", "coords", When::HasNot("shape", "default")),
    (
        "button",
        "formaction formenctype formmethod formnovalidate formtarget",
        When::HasNot("type", "button reset"),
    ),
    ("link", "as", When::Has("rel", "modulepreload preload")),
    ("link", "color", When::Has("rel", "mask-icon")),
    ("link", "disabled", When::Has("rel", "stylesheet")),
    ("link", "imagesizes imagesrcset", When::Has("as", "image")),
    ("link", "integrity", When::Has("rel", "modulepreload preload stylesheet")),
    ("link", "sizes", When::Has("rel", "apple-touch-icon icon")),
    ("script", "defer integrity", When::There("src")),
    ("script", "nomodule", When::HasNot("type", "module")),
];

/// A condition on a second attribute.
pub(super) enum When {
    There(&'static str),
    Has(&'static str, &'static str),
    HasNot(&'static str, &'static str),
}

/// Attributes that are required in certain parents.
pub(super) const IN: &[(&str, &str, &str)] =
    &[("source", "src", "audio video"), ("source", "srcset", "picture")];

/// Attributes that html-validate requires and the standard only recommends.
pub(super) const NOT_REQUIRED: &[(&str, &str)] =
    &[("embed", "src"), ("embed", "title"), ("html", "lang"), ("iframe", "title")];

/// Categories that html-validate gives to elements that do not have them (HTML 3.2.5.2).
pub(super) const NOT_IN: &[(&str, &str)] =
    &[("blockquote", "sectioning"), ("details", "sectioning"), ("td", "flow"), ("th", "flow")];

/// The content of elements for which html-validate has no rule or an incomplete one.
pub(super) const CONTENT: &[(&str, &[&str])] = &[
    ("details", &["summary?"]),
    // Allowed inside a select only: see `WITHIN`.
    ("div", &["optgroup", "option"]),
    ("hgroup", &["@script"]),
    ("main", &["@flow"]),
    // A select with a customized appearance may contain more than options (HTML 4.10.7).
    ("optgroup", &["div", "legend", "noscript"]),
    ("picture", &["img?"]),
    ("search", &["@flow"]),
    ("select", &["div", "noscript"]),
];

/// Ancestors that an element needs, where the rule about its parent is not enough.
pub(super) const WITHIN: &[(&str, &str)] =
    &[("optgroup", "select template"), ("option", "datalist optgroup select template")];

/// The only elements that may be ancestors, besides custom elements (HTML 4.4.14).
pub(super) const AROUND: &[(&str, &str)] = &[("main", "body div form html")];

/// The elements that html-validate calls `@heading`.
pub(super) const HEADINGS: &str = "h1|h2|h3|h4|h5|h6";

/// Required children that html-validate does not know.
pub(super) const NEEDS: &[(&str, &str)] = &[("picture", "img")];

/// Children that html-validate requires and a browser inserts.
pub(super) const NOT_NEEDED: &[(&str, &str)] = &[("html", "body"), ("html", "head")];

/// Elements whose content is text only.
pub(super) const TEXT: &[&str] = &["rp", "script", "style", "textarea", "title"];

/// Elements with any content: the purpose of a template is unknown, and SVG and MathML have their
/// own rules.
pub(super) const ANYTHING: &[&str] = &["math", "svg", "template"];

/// Attributes that html-validate lists by mistake among the elements allowed in `select`.
pub(super) const NO_ELEMENTS: &[&str] = &["datafld", "dataformatas", "datasrc"];

/// The values of `rel` that allow a `link` in a body (HTML 4.6.8, "body-ok").
pub(super) const BODY_OK: &str =
    "dns-prefetch modulepreload pingback preconnect prefetch preload stylesheet";

/// The states that ARIA 1.1 has removed.
pub(super) const STATES: &[(&str, &str)] =
    &[("aria-dropeffect", "say it in the text"), ("aria-grabbed", "say it in the text")];

/// The attributes of SVG 2, of filters, masks and animation: no package lists them.
pub(super) const SVG: &str = "\
    accumulate additive amplitude attributeName autofocus azimuth baseFrequency begin bias by calcMode class \
    clipPathUnits crossorigin cx cy d diffuseConstant divisor download dur dx dy edgeMode elevation end exponent \
    fetchpriority filterUnits fr from fx fy gradientTransform gradientUnits height href hreflang id in in2 intercept k1 \
    k2 k3 k4 kernelMatrix kernelUnitLength keyPoints keySplines keyTimes lang lengthAdjust limitingConeAngle \
    markerHeight markerUnits markerWidth maskContentUnits maskUnits max media method min mode nonce numOctaves offset \
    operator order orient origin path pathLength patternContentUnits patternTransform patternUnits ping points \
    pointsAtX pointsAtY pointsAtZ preserveAlpha preserveAspectRatio primitiveUnits r radius refX refY referrerpolicy \
    rel repeatCount repeatDur requiredExtensions restart result role rotate rx ry scale seed side slope spacing \
    specularConstant specularExponent spreadMethod startOffset stdDeviation stitchTiles style surfaceScale \
    systemLanguage tabindex tableValues target targetX targetY textLength title to transform type values viewBox width \
    x x1 x2 xChannelSelector xlink:href xlink:title xml:lang xml:space xmlns xmlns:xlink y y1 y2 yChannelSelector z";

/// The properties that SVG 2 allows as attributes (SVG 2, 6.6), and the former ones that browsers
/// read.
pub(super) const PRESENTATION: &str = "\
    alignment-baseline baseline-shift clip clip-path clip-rule color color-interpolation \
    color-interpolation-filters cursor direction display dominant-baseline fill fill-opacity fill-rule filter \
    flood-color flood-opacity font-family font-size font-size-adjust font-stretch font-style font-variant font-weight \
    glyph-orientation-horizontal glyph-orientation-vertical image-rendering letter-spacing lighting-color marker-end \
    marker-mid marker-start mask mask-type opacity overflow paint-order pointer-events shape-rendering stop-color \
    stop-opacity stroke stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit \
    stroke-opacity stroke-width text-anchor text-decoration text-overflow text-rendering transform-origin unicode-bidi \
    vector-effect visibility white-space word-spacing writing-mode";

/// The attributes of MathML Core: no package lists them.
pub(super) const MATHML: &str = "\
    accent accentunder alttext arg autofocus class columnspan depth dir display displaystyle encoding fence form height \
    href id intent lang largeop linethickness lspace mathbackground mathcolor mathsize mathvariant maxsize minsize \
    movablelimits nonce role rowspan rspace scriptlevel separator stretchy style symmetric tabindex voffset width xml:lang \
    xmlns";

/// CSS types defined in prose that contain no keywords and no names.
pub(super) const WITHOUT_WORDS: &[&str] = &[
    "age",
    "angle",
    "any-value",
    "declaration-value",
    "decibel",
    "dimension",
    "dimension-token",
    "flex",
    "font-feature-value-type",
    "frequency",
    "hash-token",
    "hex-color",
    "id",
    "integer",
    "length",
    "level",
    "number",
    "number-token",
    "percentage",
    "percentage-token",
    "quirky-color",
    "quirky-length",
    "resolution",
    "semitones",
    "string",
    "string-token",
    "time",
    "unicode-range-token",
    "uri",
    "url",
    "url-set",
    "url-modifier",
    "zero",
];

/// Grammar that the source has in prose only.
pub(super) const GRAMMAR: &[(&str, &str)] = &[
    ("border-style", "<line-style>"),
    ("border-width", "<line-width>"),
    ("gender", "male | female | neutral"),
    ("margin-width", "<length> | <percentage> | auto"),
    ("padding-width", "<length> | <percentage>"),
    // As in SVG 2 and in browsers; a later definition may replace both.
    ("paint", "none | <color> | <url> | child | context-fill | context-stroke"),
    (
        "timeline-range-name",
        "contain | cover | entry | entry-crossing | exit | exit-crossing | scroll",
    ),
];

/// SVG properties that take a number without a unit although their grammar in CSS has none.
pub(super) const NUMBERS: &[&str] = &["stroke-dasharray", "stroke-dashoffset", "stroke-width"];

/// The keywords of every property (CSS Cascade 5, 7.3).
pub(super) const WIDE: &str = "inherit initial revert revert-layer unset";
