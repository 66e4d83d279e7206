//! The validity period of a certificate (RFC 5280 section 4.1.2.5).

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::security::der::DerElements;

/// A validity period, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Validity {
    pub(super) from: u64,
    pub(super) until: u64,
}

const SEQUENCE: u8 = 0x30;
/// The tag of the version, which is optional.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

impl Validity {
    /// The validity of the first certificate in `pem`, or `None` if it is missing or invalid.
    pub(super) fn of_pem(pem: &[u8]) -> Option<Self> {
        Self::of_der(&CertificateDer::from_pem_slice(pem).ok()?)
    }

    /// Parses only as far as the validity; faults after that are not detected here.
    fn of_der(der: &[u8]) -> Option<Self> {
        let mut certificate = DerElements(DerElements(der).content(SEQUENCE)?);
        let mut signed = DerElements(certificate.content(SEQUENCE)?);
        if signed.0.first() == Some(&VERSION) {
            signed.next()?;
        }
        let [_serial, _algorithm, _issuer] = [signed.next()?, signed.next()?, signed.next()?];
        let mut validity = DerElements(signed.content(SEQUENCE)?);
        Some(Self { from: time(&mut validity)?, until: time(&mut validity)? })
    }
}

fn time(elements: &mut DerElements<'_>) -> Option<u64> {
    let (kind, content) = elements.next()?;
    let text = std::str::from_utf8(content).ok()?;
    match kind {
        // A year of two digits is between 1950 and 2049.
        UTC_TIME if text.get(..2)? < "50" => seconds(&format!("20{text}")),
        UTC_TIME => seconds(&format!("19{text}")),
        GENERALIZED_TIME => seconds(text),
        _ => None,
    }
}

/// Parses `YYYYMMDDHHMMSSZ` into seconds since 1970. An earlier time becomes 0.
fn seconds(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('Z').filter(|digits| digits.len() == 14)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = |from: usize, to: usize| digits[from..to].parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(8, 10)?, number(10, 12)?, number(12, 14)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // In a year that starts in March the leap day is the last day.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use bine_http::Date;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parses_both_forms_of_time() {
        for (text, expected) in [
            ("19700101000000Z", Some("Thu, 01 Jan 1970 00:00:00 GMT")),
            ("19941106084937Z", Some("Sun, 06 Nov 1994 08:49:37 GMT")),
            ("20240229235959Z", Some("Thu, 29 Feb 2024 23:59:59 GMT")),
            ("20240301000000Z", Some("Fri, 01 Mar 2024 00:00:00 GMT")),
            ("21000301000000Z", Some("Mon, 01 Mar 2100 00:00:00 GMT")),
            ("20241301000000Z", None),
            ("2024030100000Z", None),
            ("20240301000000", None),
            ("2024030100000\u{e9}Z", None),
        ] {
            assert_eq!(seconds(text), expected.and_then(Date::parse), "{text}");
        }
        let utc = |text: &str| {
            let der = [&[UTC_TIME, text.len() as u8], text.as_bytes()].concat();
            time(&mut DerElements(&der))
        };
        assert_eq!(utc("491231235959Z"), seconds("20491231235959Z"));
        assert_eq!(utc("700101000001Z"), Some(1));
        assert_eq!(utc("500101000001Z"), Some(0));
    }

    fn certificate(first_year: i32, last_year: i32) -> String {
        let mut parameters = rcgen::CertificateParams::new(["a.example".to_owned()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(first_year, 2, 3);
        parameters.not_after = rcgen::date_time_ymd(last_year, 4, 5);
        parameters.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
    }

    #[test]
    fn reads_the_validity_of_a_certificate() {
        let found = Validity::of_pem(certificate(2026, 2060).as_bytes()).unwrap();
        assert_eq!(Some(found.from), seconds("20260203000000Z"));
        assert_eq!(Some(found.until), seconds("20600405000000Z"));
        assert_eq!(Validity::of_pem(b""), None);
    }

    proptest! {
        #[test]
        fn reads_any_bytes_without_a_panic(der: Vec<u8>) {
            let _ = Validity::of_der(&der);
        }

        #[test]
        fn truncated_certificate_has_no_validity(length in 0usize..60) {
            let pem = certificate(2026, 2027);
            let whole = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            prop_assert_eq!(Validity::of_der(&whole[..length]), None);
        }

        #[test]
        fn reads_a_changed_certificate_without_a_panic(place: usize, byte: u8) {
            let pem = certificate(2026, 2027);
            let mut der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec();
            let place = place % der.len();
            der[place] = byte;
            let _ = Validity::of_der(&der);
        }
    }
}
