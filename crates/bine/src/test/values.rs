//! Validates the values of form fields as a browser does: numbers, dates, addresses and their
//! limits (HTML 4.10.5.1 and 4.10.5.3).

use bine_html::tree::Element;

/// Returns why a browser would reject a field's value that is not empty. `pattern` is not checked.
pub(super) fn problem(field: &Element, value: &str) -> Option<String> {
    let kind = field.attribute("type").unwrap_or_default().to_ascii_lowercase();
    match &*kind {
        "number" => match number(value) {
            Some(number) => problem_of_number(field, number),
            None => Some("takes a number".to_owned()),
        },
        "email" => {
            let is_fine = match field.attribute("multiple") {
                Some(_) => value.split(',').all(|one| is_email(one.trim())),
                None => is_email(value.trim()),
            };
            (!is_fine).then(|| "takes an address of mail, as a@b.example".to_owned())
        }
        "url" => (!is_whole_address(value.trim()))
            .then(|| "takes a whole address, as https://example.org/".to_owned()),
        "date" | "month" | "week" | "time" | "datetime-local" => {
            problem_of_time(field, &kind, value)
        }
        _ => None,
    }
}

/// Returns the initial value of a field for its `value` attribute.
pub(super) fn initial(field: &Element, value: &str) -> String {
    let is_number = field.attribute("type").is_some_and(|kind| kind.eq_ignore_ascii_case("number"));
    if is_number && number(value).is_none() { String::new() } else { value.to_owned() }
}

fn problem_of_number(field: &Element, value: f64) -> Option<String> {
    let limit = |name: &str| number(field.attribute(name)?.trim());
    let (least, most) = (limit("min"), limit("max"));
    if let Some(least) = least.filter(|least| value < *least) {
        return Some(format!("takes {least} or more"));
    }
    if let Some(most) = most.filter(|most| value > *most) {
        return Some(format!("takes {most} or less"));
    }
    if field.attribute("step").is_some_and(|step| step.trim().eq_ignore_ascii_case("any")) {
        return None;
    }
    let step = limit("step").filter(|step| *step > 0.0).unwrap_or(1.0);
    let base = least.or_else(|| limit("value")).unwrap_or(0.0);
    let steps = (value - base) / step;
    // Decimal fractions are inexact in binary, so a small part of a step is tolerated.
    let is_on_step = (steps - steps.round()).abs() <= 1e-9 * steps.abs().max(1.0);
    (!is_on_step).then(|| format!("takes steps of {step} from {base}"))
}

/// Values of one type sort as their texts do.
fn problem_of_time(field: &Element, kind: &str, value: &str) -> Option<String> {
    let shape = match kind {
        "date" => "2026-12-31",
        "month" => "2026-12",
        "week" => "2026-W52",
        "time" => "23:59",
        _ => "2026-12-31T23:59",
    };
    let has_shape = |text: &str| {
        let is_like = |(own, shape): (u8, u8)| {
            if shape.is_ascii_digit() { own.is_ascii_digit() } else { own == shape }
        };
        let is_long = text.len() == shape.len()
            // Seconds may follow.
            || (kind.contains("time") && text.as_bytes().get(shape.len()) == Some(&b':'));
        is_long && text.bytes().zip(shape.bytes()).all(is_like)
    };
    if !has_shape(value) {
        return Some(format!("takes a {kind} as {shape}"));
    }
    let limit = |name: &str| field.attribute(name).filter(|limit| has_shape(limit));
    match (limit("min"), limit("max")) {
        (Some(least), _) if value < least => Some(format!("takes {least} or later")),
        (_, Some(most)) if value > most => Some(format!("takes {most} or earlier")),
        _ => None,
    }
}

/// Parses a floating-point number by the rules of HTML (2.3.4.3), which are stricter than Rust's.
fn number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"-+.eE".contains(&byte));
    if !is_plain || text.starts_with('+') || text.ends_with('.') || text.contains(".e") {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Follows the pattern of HTML 4.10.5.1.5.
fn is_email(text: &str) -> bool {
    let is_letter =
        |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty() && name.bytes().all(is_letter) && host.split('.').all(is_label)
    })
}

/// Checks the scheme and that a host follows where the scheme needs one. Other faults that a
/// browser would find are accepted.
fn is_whole_address(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(is_letter);
        let has_host = !matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp")
            || rest.trim_start_matches(['/', '\\']).starts_with(|first| !"?#:".contains(first));
        is_scheme && has_host && !rest.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks an `<input>` with these attributes.
    #[track_caller]
    fn check(attributes: &[(&'static str, &str)], value: &str, expected: &str) {
        let mut field = Element::new("input").unwrap();
        for (name, value) in attributes {
            field.set_attribute(*name, *value).unwrap();
        }
        assert_eq!(problem(&field, value).unwrap_or_default(), expected, "{value}");
    }

    #[test]
    fn checks_range_and_step_of_numbers() {
        let plain = [("type", "number")];
        for fine in ["0", "-7", "2e3", "10"] {
            check(&plain, fine, "");
        }
        for wrong in ["seven", "+1", "1.", "inf", "1,5", "--1", "1e999"] {
            check(&plain, wrong, "takes a number");
        }
        check(&plain, "1.5", "takes steps of 1 from 0");
        let limits = [("type", "number"), ("min", "1"), ("max", "9"), ("step", "2")];
        check(&limits, "7", "");
        check(&limits, "0", "takes 1 or more");
        check(&limits, "11", "takes 9 or less");
        check(&limits, "4", "takes steps of 2 from 1");
        check(&[("type", "Number"), ("step", "0.1")], "0.3", "");
        check(&[("type", "number"), ("step", "any")], "0.123", "");
    }

    #[test]
    fn checks_email_and_url_fields() {
        let mail = "takes an address of mail, as a@b.example";
        for (value, expected) in
            [("ann@example.org", ""), ("a+b@c", ""), ("ann", mail), ("a@-b", mail), ("a b@c", mail)]
        {
            check(&[("type", "email")], value, expected);
        }
        check(&[("type", "email"), ("multiple", "")], "a@b, c@d", "");
        let address = "takes a whole address, as https://example.org/";
        for (value, expected) in [
            ("https://example.org/a", ""),
            ("mailto:a@b", ""),
            ("example.org", address),
            ("/a", address),
            ("https://", address),
        ] {
            check(&[("type", "url")], value, expected);
        }
    }

    #[test]
    fn checks_range_of_dates() {
        let dates = [("type", "date"), ("min", "2026-01-31"), ("max", "2026-12-31")];
        check(&dates, "2026-02-01", "");
        check(&dates, "2026-01-30", "takes 2026-01-31 or later");
        check(&dates, "2027-01-01", "takes 2026-12-31 or earlier");
        check(&dates, "1.2.2026", "takes a date as 2026-12-31");
        check(&[("type", "time"), ("max", "20:00")], "19:30:15", "");
    }

    proptest! {
        #[test]
        fn validates_any_text_without_panic(value: String, kind in 0..9_usize) {
            let kinds = ["number", "email", "url", "date", "month", "week", "time", "datetime-local", ""];
            let mut field = Element::new("input").unwrap();
            field.set_attribute("type", kinds[kind]).unwrap();
            let _ = problem(&field, &value);
            prop_assert!(kind != 8 || problem(&field, &value).is_none());
        }
    }
}
