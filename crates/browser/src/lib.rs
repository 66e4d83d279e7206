//! Decides what the small script is that a page carries: patches come in, forms go out, handlers work.
//!
//! The files beside this one are its source, one idea each, and begin at `live.js`. `cargo xtask script` joins them and
//! makes them small; what comes of it is kept in `made`, so that a program is built with nothing but Rust.

#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;

/// The module, as it is served: `text/javascript`, and the same as long as [`HASH`] is.
pub const SCRIPT: &str = include_str!("made/live.js");

/// Sixteen hexadecimal digits that tell this script from any other version of it, for its address.
pub const HASH: &str = match str::from_utf8(&DIGITS) {
    Ok(digits) => digits,
    Err(_) => unreachable!(),
};

/// Another module, by which a page's own script finds the one at `path` under a name that does not change. A redirect
/// would not do: a browser would take what it leads to for another module, and run it twice.
pub fn door(path: &str) -> String {
    format!("export * from \"{path}\";\n")
}

const DIGITS: [u8; 16] = digits(fingerprint(SCRIPT.as_bytes()));

/// FNV-1a: it tells versions apart, it proves nothing.
const fn fingerprint(text: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < text.len() {
        hash = (hash ^ text[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

const fn digits(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    let mut at = 0;
    while at < digits.len() {
        digits[at] = b"0123456789abcdef"[(number >> (60 - 4 * at)) as usize & 15];
        at += 1;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_script() {
        assert_eq!(HASH.len(), 16);
        assert_eq!(u64::from_str_radix(HASH, 16), Ok(fingerprint(SCRIPT.as_bytes())));
        // Known answers of the hash's authors.
        assert_eq!(fingerprint(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn the_door_leads_to_the_script() {
        assert_eq!(door("/live-1.js"), "export * from \"/live-1.js\";\n");
    }

    #[test]
    fn a_strict_policy_lets_the_script_run() {
        for refused in ["eval(", "Function(", "import(", "setAttribute(\"style\"", "document.write"]
        {
            assert!(!SCRIPT.contains(refused), "{refused}");
        }
    }
}
