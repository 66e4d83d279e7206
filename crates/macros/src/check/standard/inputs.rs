//! Examples for each type of `input` (HTML 4.10.5).

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        anchor: "the-input-element",
        right: &[
            "<form><p><label>Name: <input></label></p></form>",
            r#"<input name="a" value="b" disabled form="f" autocomplete="section-blue shipping street-address" autofocus>"#,
            r#"<input type={kind} checked={on} min="1" maxlength="3" src="a" alt="b">"#,
        ],
        wrong: &[
            (r#"<input type="txet">"#, "did you mean `text`?"),
            (r#"<input type="datetime">"#, "`type` takes one of"),
            (r#"<input tpye="text">"#, "did you mean `type`?"),
            (r#"<input required="required">"#, "`required` takes no value"),
            (r#"<input name="a">t</input>"#, "`<input>` is void"),
            ("<ul><input></ul>", "`<input>` is not allowed in `<ul>`"),
            ("<button><input></button>", "`<input>` is not allowed inside `<button>`"),
            (r#"<input align="left">"#, "`align` is no longer part of HTML"),
        ],
    },
    Page {
        anchor: "hidden-state-(type=hidden)",
        right: &[
            r#"<input type="hidden" name="a" value="CHF" autocomplete="transaction-currency">"#,
            r#"<a href="/"><input type="hidden"></a>"#,
        ],
        wrong: &[
            (
                r#"<input type="hidden" required>"#,
                "`<input>` with `type=\"hidden\"` has no `required`: that is for",
            ),
            (r#"<input type="hidden" placeholder="a">"#, "has no `placeholder`"),
        ],
    },
    Page {
        anchor: "text-(type=text)-state-and-search-state-(type=search)",
        right: &[
            r#"<input type="text" name="q" list="l" maxlength="140" minlength="2" size="20" pattern="[0-9]{8,19}" placeholder="John" readonly required dirname="q.dir" inputmode="numeric">"#,
            r#"<input type="search" name="q" list="l">"#,
            r#"<input pattern="[0-9][A-Z]{3}" title="A digit and three letters">"#,
        ],
        wrong: &[
            (
                r#"<input type="text" min="1">"#,
                "has no `min`: that is for `date`, `datetime-local`",
            ),
            (
                "<input checked>",
                "`<input>` with no `type` has no `checked`: that is for `checkbox`, `radio`",
            ),
            ("<input multiple>", "has no `multiple`: that is for `email`, `file`"),
            (r#"<input maxlength="ten">"#, "`maxlength` takes a whole number that is not negative"),
            (r#"<input size="0">"#, "`size` takes a whole number from 1 on"),
            (r#"<input type="search" step="1">"#, "has no `step`"),
            (r#"<input list="a b">"#, "`list` takes an id, without spaces"),
        ],
    },
    Page {
        anchor: "telephone-state-(type=tel)",
        right: &[
            r#"<label>Phone: <input type="tel" name="t" autocomplete="billing tel" placeholder="1" pattern="[0-9]+"></label>"#,
        ],
        wrong: &[
            (r#"<input type="tel" max="9">"#, "has no `max`"),
            (r#"<input type="phone">"#, "`type` takes one of"),
        ],
    },
    Page {
        anchor: "url-state-(type=url)",
        right: &[
            r#"<input type="url" name="location" list="urls" required><datalist id="urls"><option label="A" value="https://a.example/"></option></datalist>"#,
        ],
        wrong: &[(r#"<input type="url" multiple>"#, "has no `multiple`")],
    },
    Page {
        anchor: "email-state-(type=email)",
        right: &[
            r#"<label>To: <input type="email" multiple name="to" list="contacts" maxlength="90"></label>"#,
        ],
        wrong: &[
            (r#"<input type="email" accept="a">"#, "has no `accept`: that is for `file`"),
            (r#"<input type="e-mail">"#, "did you mean `email`?"),
        ],
    },
    Page {
        anchor: "password-state-(type=password)",
        right: &[
            r#"<label>Password: <input type="password" name="p" required minlength="12" autocomplete="current-password webauthn"></label>"#,
        ],
        wrong: &[(
            r#"<input type="password" list="l">"#,
            "`<input>` with `type=\"password\"` has no `list`",
        )],
    },
    Page {
        anchor: "date-state-(type=date)",
        right: &[
            r#"<input name="bday" type="date" max="1979-12-31" min="1900-01-01" step="1" value="" readonly required list="l">"#,
        ],
        wrong: &[
            (
                r#"<input type="date" max="31.12.1979">"#,
                "`max` takes a date, `2026-11-21`, not `31.12.1979`",
            ),
            (r#"<input type="date" value="2026-02-30">"#, "`value` takes a date"),
            (r#"<input type="date" min="">"#, "`min` takes a date"),
            (r#"<input type="date" placeholder="t">"#, "has no `placeholder`"),
            (r#"<input type="date" pattern="t">"#, "has no `pattern`"),
        ],
    },
    Page {
        anchor: "month-state-(type=month)",
        right: &[r#"<input name="b" type="month" value="2026-11" autocomplete="bday">"#],
        wrong: &[(
            r#"<input type="month" value="2026-11-21">"#,
            "`value` takes a month, `2026-11`",
        )],
    },
    Page {
        anchor: "week-state-(type=week)",
        right: &[r#"<input type="week" min="2026-W01" max="2026-W53">"#],
        wrong: &[(r#"<input type="week" max="2025-W53">"#, "`max` takes a week, `2026-W47`")],
    },
    Page {
        anchor: "time-state-(type=time)",
        right: &[
            r#"<input name="sleep" type="time" min="21:00" max="06:00" step="60" value="00:00">"#,
            r#"<input type="time" step="any">"#,
        ],
        wrong: &[(r#"<input type="time" min="9pm">"#, "`min` takes a time, `08:30`")],
    },
    Page {
        anchor: "local-date-and-time-state-(type=datetime-local)",
        right: &[
            r#"<label>Departure: <input type="datetime-local" name="d" step="3600" min="2026-11-21T08:00"></label>"#,
        ],
        wrong: &[(
            r#"<input type="datetime-local" value="2026-11-21T08:00Z">"#,
            "`value` takes a date and time, `2026-11-21T08:30`",
        )],
    },
    Page {
        anchor: "number-state-(type=number)",
        right: &[
            r#"<label>Price: <input type="number" min="0" step="0.01" name="price" placeholder="1" value="1" required></label>"#,
            r#"<input type="number" value="1" max="0">"#,
        ],
        wrong: &[
            (r#"<input type="number" maxlength="3">"#, "has no `maxlength`: that is for `email`"),
            (r#"<input type="number" value="many">"#, "`value` takes a number, not `many`"),
            (r#"<input type="number" max="1,000">"#, "`max` takes a number"),
            (r#"<input type="number" pattern="[0-9]">"#, "has no `pattern`"),
        ],
    },
    Page {
        anchor: "range-state-(type=range)",
        right: &[
            r#"<input type="range" min="-100" max="100" value="0" step="10" name="power" list="powers">"#,
            r#"<input name="x" type="range" min="100" step="9.09090909" value="509.090909">"#,
        ],
        wrong: &[
            (r#"<input type="range" required>"#, "has no `required`"),
            (r#"<input type="range" min="low">"#, "`min` takes a number"),
        ],
    },
    Page {
        anchor: "color-state-(type=color)",
        right: &[
            r##"<input type="color" value="#ff0000" alpha colorspace="display-p3" list="l">"##,
        ],
        wrong: &[
            (r#"<input type="color" required>"#, "has no `required`"),
            (r#"<input type="color" colorspace="rgb">"#, "`colorspace` takes one of"),
            (r#"<input type="text" alpha>"#, "has no `alpha`: that is for `color`"),
        ],
    },
    Page {
        anchor: "checkbox-state-(type=checkbox)",
        right: &[
            r#"<label><input type="checkbox" name="anon" value="yes" checked required> Hide me</label>"#,
        ],
        wrong: &[
            (r#"<input type="checkbox" readonly>"#, "has no `readonly`"),
            (r#"<input type="checkbox" checked="checked">"#, "`checked` takes no value"),
        ],
    },
    Page {
        anchor: "radio-button-state-(type=radio)",
        right: &[
            r#"<fieldset><legend>Pizza size</legend><p><label><input type="radio" name="size" value="small" required> Small</label></p></fieldset>"#,
        ],
        wrong: &[
            (r#"<input type="radio" multiple>"#, "has no `multiple`"),
            (r#"<input type="radio" chekced>"#, "did you mean `checked`?"),
        ],
    },
    Page {
        anchor: "file-upload-state-(type=file)",
        right: &[
            r#"<label>Attachments: <input type="file" multiple name="att" accept=".doc,image/*" capture="user" required></label>"#,
        ],
        wrong: &[
            (r#"<input type="file" readonly>"#, "has no `readonly`"),
            (r#"<input type="file" size="3">"#, "has no `size`"),
            (r#"<input type="file" capture="back">"#, "`capture` takes"),
        ],
    },
    Page {
        anchor: "submit-button-state-(type=submit)",
        right: &[
            r#"<input type="submit" value="Send" formaction="/b" formmethod="get" formenctype="text/plain" formnovalidate formtarget="_blank">"#,
        ],
        wrong: &[
            (r#"<input type="submit" formmethod="put">"#, "`formmethod` takes one of"),
            (
                r#"<input type="text" formaction="/">"#,
                "has no `formaction`: that is for `image`, `submit`",
            ),
            (r#"<input type="submit" alt="t">"#, "has no `alt`: that is for `image`"),
        ],
    },
    Page {
        anchor: "image-button-state-(type=image)",
        right: &[
            r#"<form action="/where"><input type="image" src="map.png" name="where" alt="Show places" width="10" height="10"></form>"#,
        ],
        wrong: &[
            (
                r#"<input type="image" src="map.png">"#,
                "`<input>` needs `alt` where `type` is `image`",
            ),
            (r#"<input type="image" alt="t">"#, "`<input>` needs `src` where `type` is `image`"),
            (r#"<input type="text" width="10">"#, "has no `width`: that is for `image`"),
            (r#"<input src="a">"#, "`<input>` with no `type` has no `src`"),
        ],
    },
    Page {
        anchor: "reset-button-state-(type=reset)",
        right: &[r#"<input type="reset" value="Clear">"#],
        wrong: &[(r#"<input type="reset" formnovalidate>"#, "has no `formnovalidate`")],
    },
    Page {
        anchor: "button-state-(type=button)",
        right: &[
            r#"<p><input type="button" value="Compose" onclick={raw_code} popovertarget="m" popovertargetaction="show"></p>"#,
        ],
        wrong: &[
            (r#"<input type="button" required>"#, "has no `required`"),
            (r#"<input type="text" popovertarget="m">"#, "has no `popovertarget`"),
        ],
    },
];
