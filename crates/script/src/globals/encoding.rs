//! Text as bytes and as base64.

use rquickjs::Value;

use super::{NativeError, new_text, text};
use crate::quickjs::{self, Arguments};
use crate::state::State;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `encode(text)`: UTF-8.
pub(super) fn encode<'js>(
    _: &State,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, NativeError> {
    let ctx = arguments.ctx();
    let bytes =
        quickjs::with_text(&arguments.at(0), |text| quickjs::new_bytes(ctx, text.as_bytes()));
    Ok(bytes.ok_or_else(|| NativeError::type_error("a string is expected"))??)
}

/// `decode(bytes, fatal, keepsMark)`: text.
pub(super) fn decode<'js>(
    _: &State,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, NativeError> {
    let is_set = |index| arguments.at(index).as_bool() == Some(true);
    let bytes = quickjs::bytes_of(&arguments.at(0));
    let bytes = bytes.ok_or_else(|| NativeError::type_error("bytes are expected"))?;
    let decoded = if is_set(1) {
        let strict = std::str::from_utf8(&bytes);
        strict.map_err(|_| NativeError::type_error("the bytes are not UTF-8"))?.into()
    } else {
        String::from_utf8_lossy(&bytes)
    };
    let mark = if is_set(2) { None } else { decoded.strip_prefix('\u{feff}') };
    new_text(arguments.ctx(), mark.unwrap_or(&decoded))
}

/// `btoa(text)`: base64 of characters up to U+00FF; `null` for any other text.
pub(super) fn btoa<'js>(
    _: &State,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, NativeError> {
    let ctx = arguments.ctx();
    let bytes: Option<Vec<u8>> =
        text(arguments, 0)?.chars().map(|character| u8::try_from(character).ok()).collect();
    match bytes {
        Some(bytes) => new_text(ctx, &to_base64(&bytes)),
        None => Ok(Value::new_null(ctx.clone())),
    }
}

/// `atob(text)`: the bytes; `null` if the text is no base64.
pub(super) fn atob<'js>(
    _: &State,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, NativeError> {
    let ctx = arguments.ctx();
    match from_base64(&text(arguments, 0)?) {
        Some(bytes) => Ok(quickjs::new_bytes(ctx, &bytes)?),
        None => Ok(Value::new_null(ctx.clone())),
    }
}

fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = 0_u32;
        for index in 0..3 {
            bits = bits << 8 | u32::from(group.get(index).copied().unwrap_or(0));
        }
        for index in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * index) & 63) as usize];
            out.push(if index <= group.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

/// Decodes base64 as the Infra Standard, section 6, defines it: spaces are skipped, padding is
/// optional, and trailing bits are dropped.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
    let mut letters: Vec<u8> = text.bytes().filter(|byte| !is_space(byte)).collect();
    if letters.len().is_multiple_of(4) {
        let padding = letters.iter().rev().take(2).take_while(|letter| **letter == b'=').count();
        letters.truncate(letters.len() - padding);
    }
    if letters.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    for group in letters.chunks(4) {
        let mut bits = 0_u32;
        for index in 0..4 {
            let letter = group.get(index).copied().unwrap_or(b'A');
            let value = ALPHABET.iter().position(|known| *known == letter)?;
            bits = bits << 6 | value as u32;
        }
        out.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_survives_both_ways() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(to_base64(bytes.as_bytes()), text);
            assert_eq!(from_base64(text).as_deref(), Some(bytes.as_bytes()));
            assert_eq!(from_base64(text.trim_end_matches('=')).as_deref(), Some(bytes.as_bytes()));
        }
        for text in ["a", "Zg=", "Z===", "====", "Zm9v=", "a-b_", "Zg==Zg=="] {
            assert_eq!(from_base64(text), None, "{text}");
        }
        assert_eq!(from_base64(" Z g\n=\t="), Some(b"f".to_vec()));
    }
}
