//! The rows of the program.

use bine::prelude::*;
use serde::{Deserialize, Serialize};

/// A board. Its team is the group [`Board::group`], which may write at all its paths.
#[derive(Table)]
pub(crate) struct Board {
    pub(crate) id: Id<Board>,
    #[table(length = 1..=80, label = "Title")]
    pub(crate) title: Text,
    pub(crate) owner: Text,
    /// Whether all users may read the board.
    pub(crate) is_public: bool,
    /// The secret part of the link by which users join the team.
    #[table(unique, private)]
    pub(crate) invitation: Text,
}

/// A user of a board, for its list of people. Rights decide what the user may do.
#[derive(Table)]
#[table(unique(board, user))]
pub(crate) struct Member {
    pub(crate) id: Id<Member>,
    #[table(on_remove = "cascade")]
    pub(crate) board: Id<Board>,
    #[table(index)]
    pub(crate) user: Text,
    pub(crate) may_write: bool,
}

/// A column of a board.
#[derive(Table, Serialize, Deserialize)]
#[table(index(board, position))]
pub(crate) struct Lane {
    pub(crate) id: Id<Lane>,
    #[table(on_remove = "cascade")]
    pub(crate) board: Id<Board>,
    #[table(length = 1..=40, label = "Column")]
    pub(crate) title: Text,
    pub(crate) position: u32,
}

#[derive(Table, Serialize, Deserialize)]
#[table(index(lane, position))]
pub(crate) struct Card {
    pub(crate) id: Id<Card>,
    /// A column with cards cannot be removed.
    pub(crate) lane: Id<Lane>,
    pub(crate) position: u32,
    #[table(length = 1..=120, label = "Title")]
    pub(crate) title: Text,
    #[table(length = 0..=4000, label = "Description")]
    pub(crate) text: Text,
    /// Words with commas between them.
    #[table(length = 0..=100, label = "Labels")]
    pub(crate) labels: Text,
    pub(crate) assignee: Option<Text>,
    pub(crate) due: Option<Time>,
    pub(crate) author: Text,
}

#[derive(Table)]
pub(crate) struct Comment {
    pub(crate) id: Id<Comment>,
    #[table(index, on_remove = "cascade")]
    pub(crate) card: Id<Card>,
    pub(crate) author: Text,
    #[table(length = 1..=2000, label = "Comment")]
    pub(crate) text: Text,
    pub(crate) written: Time,
}

#[derive(Table)]
pub(crate) struct Attachment {
    pub(crate) id: Id<Attachment>,
    #[table(index, on_remove = "cascade")]
    pub(crate) card: Id<Card>,
    /// The name on the computer of its author, for display.
    pub(crate) name: Text,
    /// The name in the folder of attachments.
    pub(crate) file: Text,
    pub(crate) length: u64,
    pub(crate) author: Text,
}

impl Board {
    /// The path of a board.
    pub(crate) fn path(board: Id<Self>) -> String {
        format!("/board/{board}")
    }

    /// The group of users who may change a board.
    pub(crate) fn group(board: Id<Self>) -> String {
        format!("board-{board}")
    }

    /// The pattern of all paths of a board.
    pub(crate) fn pattern(board: Id<Self>) -> String {
        format!("/board/{board}/*")
    }
}

impl Card {
    pub(crate) fn labels(&self) -> impl Iterator<Item = &str> {
        self.labels.split(',').map(str::trim).filter(|label| !label.is_empty())
    }

    /// The due date as `YYYY-MM-DD`.
    pub(crate) fn due_day(&self) -> Option<String> {
        self.due.map(|due| due.to_string()[.."2026-11-23".len()].to_owned())
    }
}
