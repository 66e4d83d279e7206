//! The content codings of precompressed files.

use bine_http::Coding;

/// All codings, in the order of preference between equal weights. The first is usually the smallest.
pub(crate) const BY_SIZE: [Coding; 3] = [Coding::Brotli, Coding::Zstandard, Coding::Gzip];

/// Returns the extension that is appended to the original's name.
pub(crate) const fn extension(coding: Coding) -> &'static str {
    match coding {
        Coding::Brotli => ".br",
        Coding::Zstandard => ".zst",
        Coding::Gzip => ".gz",
    }
}
