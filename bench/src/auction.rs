//! The example `auction`: its data, its work and its command.

use crate::tools::Workspace;

/// The data and the work of the auction.
#[derive(Clone, Copy)]
pub(crate) struct Auction {
    /// The size of the data; 1 is that of `RUBiS`.
    pub(crate) scale: f64,
    /// Milliseconds that a page waits, and kilobytes that it hashes.
    pub(crate) delay: u64,
    pub(crate) hashes: u64,
}

impl Auction {
    /// The command of the example with these data at this port, without further options.
    pub(crate) fn bine(self, workspace: &Workspace, port: u16) -> Vec<String> {
        let program = workspace.bine("examples/auction").display().to_string();
        let mut words = vec![
            "env".to_owned(),
            format!("AUCTION_SCALE={}", self.scale),
            format!("AUCTION_DELAY_MS={}", self.delay),
            format!("AUCTION_HASHES={}", self.hashes),
            program,
        ];
        words.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
        words
    }
}
