//! Target: headers of the PROXY protocol. The result does not depend on how the bytes arrive, and
//! no byte after the header counts.

#![no_main]

use bine_http::{MAX_PROXY_HEADER, ProxyHeader, ProxyStep};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = ProxyHeader::parse(bytes);
    let end = match whole {
        Ok(ProxyStep::Header(_, length)) => {
            assert!(length <= bytes.len() && length <= MAX_PROXY_HEADER);
            assert_eq!(ProxyHeader::parse(&bytes[..length]), whole);
            length
        }
        Ok(ProxyStep::More) => {
            assert!(bytes.len() < MAX_PROXY_HEADER);
            bytes.len()
        }
        Err(_) => bytes.len(),
    };
    let mut fault = None;
    for length in 0..end.min(2 * MAX_PROXY_HEADER) {
        match ProxyHeader::parse(&bytes[..length]) {
            Ok(ProxyStep::More) => assert_eq!(fault, None, "a fault is final"),
            Ok(ProxyStep::Header(..)) => panic!("a header before its end"),
            Err(found) => assert_eq!(*fault.get_or_insert(found), found, "a fault is final"),
        }
    }
    if let Some(fault) = fault {
        assert_eq!(whole, Err(fault));
    }
});
