//! Interprets the fields that concern host, framing and connection.
//!
//! Rejects any combination that two servers could frame differently (RFC 9112 sections 6.3 and
//! 11.2).

use crate::byte_class;
use crate::fault::PeerFault;
use crate::head::{Flags, HeadIndex, Span, Version};
use crate::known_field::KnownField;
use crate::limits::Limits;
use crate::line;

/// The meaning of the fields so far. Pass each field to [`add`](Self::add), then call
/// [`finish`](Self::finish).
#[derive(Debug, Default)]
pub(crate) struct FieldSummary {
    known: u32,
    host: Span,
    length: Option<u64>,
    codings: TransferCodings,
    has_close: bool,
    has_keep_alive: bool,
    has_upgrade: bool,
    expects_continue: bool,
    has_unknown_expectation: bool,
}

/// The transfer codings in the order applied, from all Transfer-Encoding fields.
#[derive(Debug, Default)]
struct TransferCodings {
    is_chunked: bool,
    has_other: bool,
}

impl FieldSummary {
    /// Adds one field with its untrimmed value, which begins at `start` in the head.
    #[inline]
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8], start: usize) -> Result<(), PeerFault> {
        let Some(known) = KnownField::from_name(name) else {
            return Ok(());
        };
        let repeated = self.known & known.bit() != 0;
        self.known |= known.bit();
        match known {
            KnownField::Host if repeated => return Err(PeerFault::RepeatedHost),
            KnownField::Host => {
                let place = line::inner(value);
                if !crate::host::is_valid(&value[place.clone()]) {
                    return Err(PeerFault::BadHost);
                }
                self.host = Span::from_range(place).shifted(start);
            }
            // Rejects even an equal length: the next server may join both into a list (RFC 9112
            // section 6.3).
            KnownField::ContentLength if repeated => return Err(PeerFault::RepeatedLength),
            KnownField::ContentLength => self.length = Some(decimal(line::trim(value))?),
            KnownField::TransferEncoding => self.codings.add(value)?,
            KnownField::Connection => {
                for option in elements(value) {
                    self.has_close |= option.eq_ignore_ascii_case(b"close");
                    self.has_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                    self.has_upgrade |= option.eq_ignore_ascii_case(b"upgrade");
                }
            }
            KnownField::Expect => {
                for expectation in elements(value) {
                    let known = expectation.eq_ignore_ascii_case(b"100-continue");
                    self.expects_continue |= known;
                    self.has_unknown_expectation |= !known;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the fields together and writes the result to the index, which already contains
    /// method, version and target.
    #[inline]
    pub(crate) fn finish(&self, index: &mut HeadIndex, limits: &Limits) -> Result<(), PeerFault> {
        let is_http11 = index.version == Version::Http11;
        let has = |known: KnownField| self.known & known.bit() != 0;
        if is_http11 && !has(KnownField::Host) {
            return Err(PeerFault::MissingHost);
        }

        let chunked = has(KnownField::TransferEncoding);
        match self.length {
            Some(_) if chunked => return Err(PeerFault::LengthAndCoding),
            Some(length) if length > limits.body => return Err(PeerFault::ContentTooLarge),
            None if chunked && !is_http11 => return Err(PeerFault::CodingInOldVersion),
            None if chunked => self.codings.finish()?,
            // An HTTP/1.0 client without a length could end its content only by closing, and then
            // it could not receive a response.
            None if !is_http11 && index.method.carries_content() => {
                return Err(PeerFault::LengthRequired);
            }
            _ => {}
        }
        let length = self.length.unwrap_or(0);
        // RFC 9110 section 10.1.1: a server ignores an expectation in an HTTP/1.0 request.
        if is_http11 && self.has_unknown_expectation {
            return Err(PeerFault::Expectation);
        }

        index.known = self.known;
        index.content_length = length;
        if index.authority == Span::default() {
            index.authority = self.host;
        }
        let flags = &mut index.flags;
        flags.set(Flags::CHUNKED, chunked);
        flags.set(Flags::LENGTH, length > 0);
        flags.set(
            Flags::EXPECTS_CONTINUE,
            is_http11 && self.expects_continue && (chunked || length > 0),
        );
        flags.set(Flags::KEEP_ALIVE, !self.has_close && (is_http11 || self.has_keep_alive));
        flags.set(Flags::UPGRADE, is_http11 && self.has_upgrade);
        Ok(())
    }
}

impl TransferCodings {
    fn add(&mut self, value: &[u8]) -> Result<(), PeerFault> {
        for coding in elements(value) {
            if !byte_class::is_token(coding) {
                return Err(PeerFault::CodingSyntax);
            }
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            match (self.is_chunked, chunked) {
                (true, true) => return Err(PeerFault::ChunkedTwice),
                (true, false) => return Err(PeerFault::ChunkedNotLast),
                (false, _) => {}
            }
            self.is_chunked = chunked;
            self.has_other |= !chunked;
        }
        Ok(())
    }

    const fn finish(&self) -> Result<(), PeerFault> {
        match (self.is_chunked, self.has_other) {
            (false, _) => Err(PeerFault::ChunkedNotLast),
            (true, true) => Err(PeerFault::UnknownCoding),
            (true, false) => Ok(()),
        }
    }
}

/// Rejects a trailer field that concerns framing, routing or identity, which the head has already
/// decided (RFC 9110 section 6.5.1). The parser drops any other trailer field.
pub(crate) fn check_trailer(name: &[u8]) -> Result<(), PeerFault> {
    let decides = matches!(
        KnownField::from_name(name),
        Some(
            KnownField::Host
                | KnownField::ContentLength
                | KnownField::TransferEncoding
                | KnownField::Connection
                | KnownField::Upgrade
                | KnownField::Expect
                | KnownField::Authorization
                | KnownField::Cookie
                | KnownField::ContentEncoding
                | KnownField::ContentType
        )
    );
    let also: [&[u8]; 4] = [b"trailer", b"te", b"proxy-authorization", b"content-range"];
    if decides || also.iter().any(|other| name.eq_ignore_ascii_case(other)) {
        return Err(PeerFault::TrailerField);
    }
    Ok(())
}

/// Returns the elements of a comma-separated list, including empty ones.
pub(crate) fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(line::trim)
}

/// Parses a number of decimal digits, without sign, list or white space.
fn decimal(digits: &[u8]) -> Result<u64, PeerFault> {
    if digits.is_empty() {
        return Err(PeerFault::LengthSyntax);
    }
    digits
        .iter()
        .try_fold(0u64, |number, digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            number.checked_mul(10)?.checked_add(digit)
        })
        .ok_or(PeerFault::LengthSyntax)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::{TransferCodings, check_trailer, decimal};

    fn codings(values: &[&str]) -> String {
        let mut codings = TransferCodings::default();
        let taken = values.iter().try_for_each(|value| codings.add(value.as_bytes()));
        match taken.and_then(|()| codings.finish()) {
            Ok(()) => String::from("chunked"),
            Err(fault) => format!("{fault}"),
        }
    }

    #[test]
    fn content_length_is_digits_only() {
        assert_eq!(decimal(b"0"), Ok(0));
        assert_eq!(decimal(b"007"), Ok(7));
        assert_eq!(decimal(b"18446744073709551615"), Ok(u64::MAX));
        for bad in ["", "+1", "-1", "1,1", "1 1", "0x1", "1.0", "18446744073709551616", "\u{663}"] {
            assert!(decimal(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn requires_chunked_as_last_and_only_coding() {
        assert_eq!(codings(&["chunked"]), "chunked");
        assert_eq!(codings(&["Chunked"]), "chunked");
        assert_eq!(codings(&["gzip"]), "chunked is not the last coding");
        assert_eq!(codings(&["chunked, gzip"]), "chunked is not the last coding");
        assert_eq!(codings(&["chunked", "identity"]), "chunked is not the last coding");
        assert_eq!(codings(&["chunked,chunked"]), "chunked more than once");
        assert_eq!(codings(&["chunked", "chunked"]), "chunked more than once");
        assert_eq!(codings(&["gzip, chunked"]), "transfer coding other than chunked");
        assert_eq!(codings(&["gzip", "chunked"]), "transfer coding other than chunked");
    }

    #[test]
    fn rejects_malformed_transfer_codings() {
        for odd in
            ["", "chunked,", ",chunked", "chunked;a=b", "\"chunked\"", "chun ked", "chunked\x0b"]
        {
            assert_eq!(codings(&[odd]), "malformed Transfer-Encoding", "{odd}");
        }
        assert_eq!(codings(&["xchunked"]), "chunked is not the last coding");
    }

    #[test]
    fn rejects_trailers_that_contradict_the_head() {
        for name in ["host", "Content-Length", "TRANSFER-ENCODING", "Cookie", "te"] {
            assert!(check_trailer(name.as_bytes()).is_err(), "{name}");
        }
        assert!(check_trailer(b"x-checksum").is_ok());
    }
}
