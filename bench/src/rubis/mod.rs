//! The sessions of visitors of the auction site, as in the benchmark `RUBiS`.
//!
//! A [`Walk`] is one session. It gets the content of the last page ([`PageSeen`]) and returns the
//! next request, or the end of the session. It opens no socket and reads no clock: the caller
//! handles think times, images and errors.
//!
//! The published transition table of `RUBiS` has two errors, which these tables avoid. Its corner
//! cell declares rows as origins, but its loader reads columns as origins. Some columns of the
//! table add up to 1.21; the draw ignores everything beyond 1, so that the last row, the end of the
//! session, is almost never drawn although it seems likely. Here each line adds up to 1, which a
//! test checks, and has only transitions that the original could draw.
//!
//! The resulting sessions agree with simulations of the original: bidding sessions have 51 pages on
//! average; half of the sessions have fewer than 37, one in twenty has more than 145; 9 % of the
//! pages write. Browsing sessions have 452 pages on average; 15 % of the sessions reach the limit.

mod page;
mod state;
mod table;
mod walk;

pub(crate) use page::PageSeen;
pub(crate) use state::State;
pub(crate) use walk::{Request, Step, Walk};

/// The kinds of visitors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mix {
    /// Visitors browse, bid, buy, sell and comment.
    Bidding,
    /// Visitors only browse.
    Browsing,
}

/// The limit of pages per session.
pub(crate) const MOST_PAGES: usize = 1000;
