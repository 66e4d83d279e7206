//! The script of live pages, which applies patches, sends forms, and runs declarative handlers, and
//! a module that shows times.
//!
//! The JavaScript files in this folder are its source, one topic each. `live.js` is the entry
//! point; `times.js` is a module of its own. `cargo xtask script` joins and minifies them into
//! `made`, so that a build needs only Rust.
//!
//! ```
//! let url = format!("/live-{}.js", bine_browser::HASH);
//! assert_eq!(bine_browser::reexport_module(&url), format!("export * from \"{url}\";\n"));
//! ```

#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;

/// The module as served: `text/javascript`. Unchanged while [`HASH`] is unchanged.
pub const SCRIPT: &str = include_str!("made/live.js");

/// The module that shows times in the visitor's language and time zone. Needs no other script.
pub const TIMES: &str = include_str!("made/times.js");

/// The types of what the module exports, for editors: the module `bine:browser`.
pub const TYPES: &str = include_str!("browser.d.ts");

/// Sixteen hexadecimal digits that identify this version of the script in its URL.
pub const HASH: &str = match str::from_utf8(&DIGITS) {
    Ok(digits) => digits,
    Err(_) => unreachable!(),
};

/// Returns a module that re-exports the module at `path`. A page's own script imports it under a
/// fixed URL. A redirect would not work: a browser would load its target as a second module and run
/// it twice.
pub fn reexport_module(path: &str) -> String {
    format!("export * from \"{path}\";\n")
}

const DIGITS: [u8; 16] = digits(fingerprint(SCRIPT.as_bytes()));

/// FNV-1a: distinguishes versions, without cryptographic strength.
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
    fn hash_identifies_the_script() {
        assert_eq!(HASH.len(), 16);
        assert_eq!(u64::from_str_radix(HASH, 16), Ok(fingerprint(SCRIPT.as_bytes())));
        // Test vectors of the hash's authors.
        assert_eq!(fingerprint(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn reexport_module_exports_the_script() {
        assert_eq!(reexport_module("/live-1.js"), "export * from \"/live-1.js\";\n");
    }

    #[test]
    fn script_runs_under_strict_content_security_policy() {
        for forbidden in ["eval(", "Function(", "setAttribute(\"style\"", "document.write"] {
            assert!(!SCRIPT.contains(forbidden) && !TIMES.contains(forbidden), "{forbidden}");
        }
        // The modules of handlers come from this server, which the policy allows.
        assert_eq!((SCRIPT.matches("import(").count(), TIMES.matches("import(").count()), (1, 0));
    }
}
