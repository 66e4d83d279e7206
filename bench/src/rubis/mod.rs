//! Decides what one visitor of the auction site does, page after page: the sessions of the benchmark `RUBiS`.
//!
//! A [`Walk`] is one session. It is given what the last page showed ([`PageSeen`]) and answers with the next request, or
//! that the visitor has left. It opens no socket and knows no time: think time, images and errors are for whoever sends.
//!
//! The published table of transitions has two traps, which these tables of ours do not have. Its corner says that a row
//! is where one comes from, but its loader reads columns so. And some of its columns add up to 1.21, of which the draw
//! never sees what lies beyond 1: the last row, the end of the session, is so nearly never drawn where it seems likely.
//! Here each line adds up to 1 (a test says so), and has only what was ever drawn there.
//!
//! What comes of it, as others have found by simulation: bidding sessions have 51 pages in the mean, half of them fewer
//! than 37, one in twenty more than 145; 9 % of the pages write. Browsing sessions have 452, 15 % of them the most there
//! can be.

mod page;
mod state;
mod table;
mod walk;

pub(crate) use page::PageSeen;
pub(crate) use state::State;
pub(crate) use walk::{Request, Step, Walk};

/// What visitors come for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mix {
    /// They look, bid, buy, sell and comment.
    Bidding,
    /// They only look.
    Browsing,
}

/// So many pages a session has at most.
pub(crate) const MOST_PAGES: usize = 1000;
