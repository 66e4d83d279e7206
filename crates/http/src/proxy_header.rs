//! The header of the PROXY protocol, by which a proxy names the client of a connection before the
//! first byte of that client ("The PROXY protocol, versions 1 & 2", Willy Tarreau, 2020).

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The maximum length of a header in bytes. Version 1 has at most 107 bytes; version 2 may carry
/// values of any length, and the largest that proxies send are certificates of clients.
pub const MAX_PROXY_HEADER: usize = 4096;

/// A header of the PROXY protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProxyHeader {
    /// The address of the client. `None`: the proxy has opened the connection for itself, or does
    /// not name its client.
    pub client: Option<SocketAddr>,
    /// Whether the client is connected to the proxy with TLS; `None` if the proxy does not say it.
    pub is_secure: Option<bool>,
}

/// The result of [`ProxyHeader::parse`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxyStep {
    /// All bytes belong to the header, and more must follow.
    More,
    /// The header, and the number of its bytes.
    Header(ProxyHeader, usize),
}

/// A violation of the PROXY protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxyFault {
    /// The bytes begin no header of any version.
    NoHeader,
    /// The line of version 1 is malformed.
    Line,
    /// The binary header has an unknown version or command.
    Version,
    /// The addresses of the binary header have an unknown or unsuitable form, or are truncated.
    Addresses,
    /// A value after the addresses is truncated.
    Value,
    /// The header exceeds [`MAX_PROXY_HEADER`].
    TooLong,
}

/// The first bytes of version 1.
const LINE_START: &[u8] = b"PROXY ";
/// The maximum length of version 1, with the end of the line (section 2.1).
const MAX_LINE: usize = 107;
/// The first bytes of version 2 (section 2.2).
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The length of the binary header before the addresses: signature, command, family, length.
const BINARY_HEAD: usize = 16;
/// The version in the upper half of the byte that follows the signature, and the commands in the
/// lower half.
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
/// Values after the addresses have a type and a length of two bytes.
const VALUE_HEAD: usize = 3;
/// The type of the value about TLS, and the bit in its first byte of a client with TLS.
const TLS_VALUE: u8 = 0x20;
const CLIENT_HAS_TLS: u8 = 1;

impl ProxyHeader {
    /// A header that names no client.
    const UNNAMED: Self = Self { client: None, is_secure: None };

    /// Parses the header at the beginning of `bytes`, which may end anywhere.
    ///
    /// # Errors
    ///
    /// `bytes` violate the protocol.
    pub fn parse(bytes: &[u8]) -> Result<ProxyStep, ProxyFault> {
        let begins = |start: &[u8]| {
            let length = start.len().min(bytes.len());
            bytes[..length] == start[..length]
        };
        if begins(LINE_START) {
            parse_line(bytes)
        } else if begins(SIGNATURE) {
            parse_binary(bytes)
        } else {
            Err(ProxyFault::NoHeader)
        }
    }
}

/// Parses version 1, `PROXY TCP4 192.0.2.7 198.51.100.1 50000 443\r\n`.
fn parse_line(bytes: &[u8]) -> Result<ProxyStep, ProxyFault> {
    let searched = &bytes[..bytes.len().min(MAX_LINE)];
    let Some(end) = searched.iter().position(|&byte| byte == b'\n') else {
        return if searched.len() < MAX_LINE { Ok(ProxyStep::More) } else { Err(ProxyFault::Line) };
    };
    let line = searched[..end].strip_suffix(b"\r").ok_or(ProxyFault::Line)?;
    let line = core::str::from_utf8(line).map_err(|_| ProxyFault::Line)?;
    let header = line_header(line).ok_or(ProxyFault::Line)?;
    Ok(ProxyStep::Header(header, end + 1))
}

fn line_header(line: &str) -> Option<ProxyHeader> {
    let mut words = line.split(' ').skip(1);
    let family = words.next()?;
    // The rest of such a line has no meaning.
    if family == "UNKNOWN" {
        return Some(ProxyHeader::UNNAMED);
    }
    let (client, server) = (words.next()?, words.next()?);
    let (client_port, server_port) = (port(words.next()?)?, port(words.next()?)?);
    let parse = |text: &str| -> Option<IpAddr> {
        match family {
            "TCP4" => text.parse().ok().map(IpAddr::V4),
            "TCP6" => text.parse().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let (client, _) = (parse(client)?, (parse(server)?, server_port));
    let client = Some(SocketAddr::new(client, client_port));
    words.next().is_none().then_some(ProxyHeader { client, is_secure: None })
}

/// Parses a port without a sign and without leading zeros.
fn port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    (is_plain || text == "0").then(|| text.parse().ok()).flatten()
}

/// Parses version 2.
fn parse_binary(bytes: &[u8]) -> Result<ProxyStep, ProxyFault> {
    let command = match bytes.get(SIGNATURE.len()) {
        None => return Ok(ProxyStep::More),
        Some(command @ (&LOCAL | &PROXY)) => *command,
        Some(_) => return Err(ProxyFault::Version),
    };
    let Some((head, rest)) = bytes.split_at_checked(BINARY_HEAD) else {
        return Ok(ProxyStep::More);
    };
    let length = usize::from(u16::from_be_bytes([head[14], head[15]]));
    if BINARY_HEAD + length > MAX_PROXY_HEADER {
        return Err(ProxyFault::TooLong);
    }
    let Some(content) = rest.get(..length) else { return Ok(ProxyStep::More) };
    let header = match command {
        // The receiver must skip the content, whatever it is.
        LOCAL => ProxyHeader::UNNAMED,
        _ => binary_header(head[13], content)?,
    };
    Ok(ProxyStep::Header(header, BINARY_HEAD + length))
}

/// Parses the addresses and values of a connection that a proxy has opened for a client.
fn binary_header(family: u8, content: &[u8]) -> Result<ProxyHeader, ProxyFault> {
    // The address of the client, that of the proxy, and the port of each.
    let (client, length) = match family {
        // A client without an address of a known kind.
        0x00 => (None, 0),
        0x11 => (address::<4>(content, |octets| Ipv4Addr::from(octets).into()), 12),
        0x21 => (address::<16>(content, |octets| Ipv6Addr::from(octets).into()), 36),
        // A client of a Unix socket.
        0x31 => (None, 216),
        // Datagrams, and values without a meaning.
        _ => return Err(ProxyFault::Addresses),
    };
    let mut rest = content.get(length..).ok_or(ProxyFault::Addresses)?;
    let mut is_secure = None;
    while !rest.is_empty() {
        let (head, values) = rest.split_at_checked(VALUE_HEAD).ok_or(ProxyFault::Value)?;
        let length = usize::from(u16::from_be_bytes([head[1], head[2]]));
        let (value, next) = values.split_at_checked(length).ok_or(ProxyFault::Value)?;
        if head[0] == TLS_VALUE {
            let client = value.first().ok_or(ProxyFault::Value)?;
            is_secure = Some(client & CLIENT_HAS_TLS != 0);
        }
        rest = next;
    }
    Ok(ProxyHeader { client, is_secure })
}

/// The address and the port of the client, which precede those of the proxy.
fn address<const N: usize>(content: &[u8], ip: fn([u8; N]) -> IpAddr) -> Option<SocketAddr> {
    let octets = content.first_chunk::<N>()?;
    let port = content.get(2 * N..)?.first_chunk::<2>()?;
    Some(SocketAddr::new(ip(*octets), u16::from_be_bytes(*port)))
}

impl fmt::Display for ProxyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::NoHeader => "it does not begin with a PROXY header",
            Self::Line => "its PROXY line is malformed",
            Self::Version => "its PROXY header has an unknown version or command",
            Self::Addresses => "its PROXY header has unknown or truncated addresses",
            Self::Value => "its PROXY header has a truncated value",
            Self::TooLong => "its PROXY header has more than 4096 bytes",
        };
        f.write_str(text)
    }
}

impl core::error::Error for ProxyFault {}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    fn render(parsed: Result<ProxyStep, ProxyFault>) -> String {
        match parsed {
            Ok(ProxyStep::More) => "more".into(),
            Ok(ProxyStep::Header(header, length)) => {
                let client = header.client.map_or("none".into(), |client| format!("{client}"));
                let scheme = header.is_secure.map_or("", |is| if is { " tls" } else { " plain" });
                format!("{client}{scheme}, {length} bytes")
            }
            Err(fault) => format!("{fault:?}"),
        }
    }

    /// Parses `bytes` as a whole, with a tail, and each of its beginnings.
    fn check(bytes: &[u8], expected: &str) {
        let whole = render(ProxyHeader::parse(bytes));
        assert_eq!(whole, expected, "{bytes:?}");
        let is_header = expected.ends_with(" bytes");
        for tail in [&b"GET / HTTP/1.1\r\n"[..], b"\n", b"\x16\x03\x01", SIGNATURE] {
            if expected != "more" {
                let parsed = ProxyHeader::parse(&[bytes, tail].concat());
                assert_eq!(render(parsed), expected, "with a tail: {bytes:?}");
            }
        }
        let mut has_failed = false;
        for length in 0..bytes.len() {
            let parsed = render(ProxyHeader::parse(&bytes[..length]));
            assert!(parsed == "more" || !is_header && parsed == expected, "{length}: {parsed}");
            assert!(!has_failed || parsed == expected, "{length}: {parsed}");
            has_failed |= parsed != "more";
        }
    }

    /// A binary header with this command, family and content.
    fn binary(command: u8, family: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [SIGNATURE, &[command, family], &length, content].concat()
    }

    /// The addresses of a client at 192.0.2.7:50000, followed by `values`.
    fn v4(values: &[u8]) -> Vec<u8> {
        [&[192, 0, 2, 7, 198, 51, 100, 1, 0xc3, 0x50, 1, 0xbb], values].concat()
    }

    #[test]
    fn parses_lines_of_version_1() {
        check(b"PROXY TCP4 192.0.2.7 198.51.100.1 50000 443\r\n", "192.0.2.7:50000, 45 bytes");
        check(b"PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "0.0.0.0:0, 32 bytes");
        check(b"PROXY TCP6 2001:db8::7 2001:db8::1 65535 1\r\n", "[2001:db8::7]:65535, 44 bytes");
        check(b"PROXY UNKNOWN\r\n", "none, 15 bytes");
        check(b"PROXY UNKNOWN ff:: any 1 2 3\r\n", "none, 30 bytes");
        let longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        let line = format!("PROXY UNKNOWN {longest} {longest} 65535 65535\r\n");
        assert_eq!(line.len(), MAX_LINE);
        check(line.as_bytes(), "none, 107 bytes");
    }

    #[test]
    fn rejects_malformed_lines() {
        for line in [
            "PROXY \r\n",
            "PROXY TCP4\r\n",
            "PROXY UDP4 192.0.2.7 198.51.100.1 50000 443\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 50000 443\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 50000\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 50000 443 1\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 50000 443 \r\n",
            "PROXY TCP4  192.0.2.7 198.51.100.1 50000 443\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 65536 443\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 050 443\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 +50 443\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 50 \r\n",
            "PROXY TCP4 192.0.2.007 198.51.100.1 50000 443\r\n",
            "PROXY TCP4 2001:db8::7 2001:db8::1 50000 443\r\n",
            "PROXY TCP6 192.0.2.7 198.51.100.1 50000 443\r\n",
            "PROXY tcp4 192.0.2.7 198.51.100.1 50000 443\r\n",
        ] {
            check(line.as_bytes(), "Line");
        }
        check(b"PROXY UNKNOWN \xff\r\n", "Line");
        let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(MAX_LINE - 15));
        assert_eq!(long.len(), MAX_LINE + 1);
        check(long.as_bytes(), "Line");
    }

    #[test]
    fn rejects_other_protocols_at_the_first_different_byte() {
        assert_eq!(render(ProxyHeader::parse(b"")), "more");
        for (bytes, length) in [
            (&b"GET / HTTP/1.1\r\n"[..], 1),
            (b"PUT / HTTP/1.1\r\n", 2),
            (b"PROXY/ HTTP/1.1\r\n", 6),
            (b"\x16\x03\x01\x02\x00", 1),
            (b"\r\n\r\nGET / HTTP/1.1\r\n", 5),
            (b"proxy TCP4", 1),
        ] {
            assert_eq!(ProxyHeader::parse(&bytes[..length]), Err(ProxyFault::NoHeader));
            check(bytes, "NoHeader");
        }
    }

    #[test]
    fn parses_binary_headers() {
        check(&binary(PROXY, 0x11, &v4(&[])), "192.0.2.7:50000, 28 bytes");
        let mut v6 = Vec::from([0; 36]);
        v6[..16].copy_from_slice(&"2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
        v6[32..34].copy_from_slice(&443_u16.to_be_bytes());
        check(&binary(PROXY, 0x21, &v6), "[2001:db8::7]:443, 52 bytes");
        check(&binary(PROXY, 0x31, &[b'/'; 216]), "none, 232 bytes");
        check(&binary(PROXY, 0x00, &[]), "none, 16 bytes");
        check(&binary(LOCAL, 0x00, &[]), "none, 16 bytes");
        // The content of a local connection has no meaning.
        check(&binary(LOCAL, 0xff, &[1, 2, 3]), "none, 19 bytes");
    }

    #[test]
    fn reads_the_value_about_tls_and_skips_others() {
        let authority = b"\x02\x00\x0bexample.org";
        let with = |values: &[&[u8]]| binary(PROXY, 0x11, &v4(&values.concat()));
        check(&with(&[authority]), "192.0.2.7:50000, 42 bytes");
        let secure = b"\x20\x00\x0d\x01\x00\x00\x00\x00\x21\x00\x05TLSv1";
        check(&with(&[authority, secure]), "192.0.2.7:50000 tls, 58 bytes");
        check(&with(&[secure, b"\x04\x00\x00"]), "192.0.2.7:50000 tls, 47 bytes");
        check(&with(&[b"\x20\x00\x05\x00\x00\x00\x00\x00"]), "192.0.2.7:50000 plain, 36 bytes");
        check(&with(&[b"\x20\x00\x05\xfe\x00\x00\x00\x00"]), "192.0.2.7:50000 plain, 36 bytes");
    }

    #[test]
    fn rejects_malformed_binary_headers() {
        for command in [0x01, 0x11, 0x22, 0x30, 0xff] {
            check(&binary(command, 0x11, &v4(&[])), "Version");
        }
        for family in [0x01, 0x10, 0x12, 0x22, 0x32, 0x41, 0xff] {
            check(&binary(PROXY, family, &[0; 216]), "Addresses");
        }
        check(&binary(PROXY, 0x11, &v4(&[])[..11]), "Addresses");
        check(&binary(PROXY, 0x21, &[0; 35]), "Addresses");
        check(&binary(PROXY, 0x31, &[0; 215]), "Addresses");
        for values in [&b"\x02"[..], b"\x02\x00", b"\x02\x00\x01", b"\x20\x00\x00"] {
            check(&binary(PROXY, 0x11, &v4(values)), "Value");
        }
    }

    #[test]
    fn bounds_the_length_of_a_binary_header() {
        let most = MAX_PROXY_HEADER - BINARY_HEAD;
        let content = |length: usize| {
            let value = u16::try_from(length - 15).unwrap().to_be_bytes();
            v4(&[&[0xe0, value[0], value[1]][..], &alloc::vec![0; length - 15]].concat())
        };
        check(&binary(PROXY, 0x11, &content(most)), "192.0.2.7:50000, 4096 bytes");
        // Rejected before the content arrives.
        let long = binary(PROXY, 0x11, &content(most + 1));
        assert_eq!(ProxyHeader::parse(&long[..BINARY_HEAD]), Err(ProxyFault::TooLong));
        check(&long, "TooLong");
    }
}
