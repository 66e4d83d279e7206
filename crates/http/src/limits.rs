//! Decides how much of a request the machine takes before it refuses.

/// What one request may cost. Each limit holds for a single request and starts anew with the next.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of request line and fields together; trailers may take as many again.
    pub head: u32,
    /// Number of fields; trailers may be as many again.
    pub fields: u16,
    /// Bytes of the request target.
    pub target: u32,
    /// Bytes of content, whatever the route: a route can only choose less.
    pub body: u64,
    /// Bytes of extensions after the size of one chunk.
    pub chunk_extension: u16,
    /// Bytes of chunk extensions in one body (Go's CVE-2023-39326: extensions outweighed the content).
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
