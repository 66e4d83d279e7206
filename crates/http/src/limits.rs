//! The size limits of a request.

/// The size limits of a request. Each limit applies to every request separately.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum size of the request line and fields in bytes. The trailer section has a separate
    /// allowance of the same size.
    pub head: u32,
    /// Maximum number of fields. The trailer section has a separate allowance of the same number.
    pub fields: u16,
    /// Maximum size of the request target in bytes.
    pub target: u32,
    /// Maximum size of the content in bytes. A route can only lower it.
    pub body: u64,
    /// Maximum size of the extensions of one chunk in bytes.
    pub chunk_extension: u16,
    /// Maximum size of all chunk extensions of one request in bytes (CVE-2023-39326 in Go: the
    /// extensions outweighed the content).
    pub chunk_extensions: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: 16 * 1024,
            fields: 100,
            target: 8 * 1024,
            body: 1 << 30,
            chunk_extension: 256,
            chunk_extensions: 4 * 1024,
        }
    }
}
