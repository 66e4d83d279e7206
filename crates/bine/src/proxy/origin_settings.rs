//! The settings of one origin: its address, and what differs from its rule.

use std::str::FromStr;

use bine_client::OriginAddress;

use crate::configuration::values::{number, switch};

/// One origin of a rule. On one line its options follow the address: `http://a;weight=2;security=off`.
#[derive(Clone, Debug)]
pub(super) struct OriginSettings {
    pub(super) address: OriginAddress,
    /// Its share of the requests; `None`: that of `weights`, or 1.
    pub(super) weight: Option<u32>,
    /// Whether the security headers of this server replace those of the origin; `None`: as the rule
    /// says.
    pub(super) has_security: Option<bool>,
}

impl FromStr for OriginSettings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(';');
        let address = parts.next().unwrap_or_default().parse();
        let address = address.map_err(|error| format!("{error}"))?;
        let mut settings = Self { address, weight: None, has_security: None };
        for part in parts {
            let named = |reason: String| format!("`{part}`: {reason}");
            match part.split_once('=') {
                Some(("weight", value)) => {
                    settings.weight = Some(number(value, 1).map_err(named)?);
                }
                Some(("security", value)) => {
                    settings.has_security = Some(switch(value).map_err(named)?);
                }
                _ => return Err(format!("`{part}` is neither weight=N nor security=on|off")),
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_options_of_an_origin() {
        let parse = |text: &str| text.parse::<OriginSettings>();
        let one = parse("http://a;weight=2;security=off").unwrap();
        assert_eq!((one.weight, one.has_security), (Some(2), Some(false)));
        assert_eq!(one.address.to_string(), "http://a");
        let plain = parse("unix:/run/a").unwrap();
        assert_eq!((plain.weight, plain.has_security), (None, None));
        for (text, expected) in [
            ("http://a;weight=0", "`weight=0`: must be a whole number, 1 or more"),
            ("http://a;security=x", "`security=x`: must be on or off"),
            ("http://a;kept=1", "`kept=1` is neither weight=N nor security=on|off"),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected);
        }
    }
}
