//! The rows of the program.

use bine::Rights;
use bine::prelude::*;
use bine::store::Transaction;
use serde::{Deserialize, Serialize};

/// A board. Its people are the members of two groups, which have rights at all its paths: the team
/// [`Board::team`] writes, and [`Board::readers`] only read.
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

    /// The group with the right to change a board.
    pub(crate) fn team(board: Id<Self>) -> String {
        format!("board-{board}")
    }

    /// The group with the right to read a board.
    pub(crate) fn readers(board: Id<Self>) -> String {
        format!("board-{board}-readers")
    }

    /// The board of a group, and whether its members may change the board.
    pub(crate) fn of_group(group: &str) -> Option<(Id<Self>, bool)> {
        let name = group.strip_prefix("board-")?;
        match name.strip_suffix("-readers") {
            Some(board) => Some((board.parse().ok()?, false)),
            None => Some((name.parse().ok()?, true)),
        }
    }

    /// Whether a user belongs to a board, as a transaction sees it.
    pub(crate) fn has_member(
        rights: &Rights,
        change: &Transaction,
        board: Id<Self>,
        user: &str,
    ) -> bool {
        let groups = [Self::team(board), Self::readers(board)];
        groups.iter().any(|group| {
            let members = rights.members_in(change, group);
            members.iter().any(|member| rights.is_same_user(member, user))
        })
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
