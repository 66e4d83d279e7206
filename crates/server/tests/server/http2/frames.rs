//! Frames of HTTP/2, written and read without a library.

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// `GET /path` with `:authority: a`, as HPACK without a table.
pub(super) fn request(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x04, path.len() as u8];
    block.extend_from_slice(path.as_bytes());
    block.extend_from_slice(b"\x01\x01a");
    block
}

/// One frame.
pub(super) struct Frame<'b> {
    pub(super) kind: u8,
    pub(super) stream: u32,
    pub(super) payload: &'b [u8],
}

/// The complete frames at the start of `bytes`.
pub(super) fn frames(mut bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    std::iter::from_fn(move || {
        let [a, b, c, kind, _, s1, s2, s3, s4, rest @ ..] = bytes else { return None };
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let payload = rest.get(..length)?;
        bytes = &rest[length..];
        Some(Frame { kind: *kind, stream: u32::from_be_bytes([*s1, *s2, *s3, *s4]), payload })
    })
}

/// The reason of the last GOAWAY among these frames.
pub(super) fn reason(bytes: &[u8]) -> Option<u32> {
    let goaway = frames(bytes).filter(|frame| frame.kind == GOAWAY).last()?;
    Some(u32::from_be_bytes(goaway.payload[4..8].try_into().unwrap()))
}
