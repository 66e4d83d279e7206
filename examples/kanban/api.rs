//! The services: forms, the script of a board and programs with a token call the same ones.

use bine::prelude::*;
use serde::{Deserialize, Serialize};

use crate::tables::{Board, Card, Comment, Lane};

const MOST_LANES: usize = 12;
/// A move renumbers the cards of a column, so a column is short.
const MOST_CARDS: usize = 500;

#[derive(Serialize, Deserialize)]
pub(crate) struct BoardEntry {
    id: Id<Board>,
    title: Text,
    may_write: bool,
    lanes: Vec<Lane>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    Up,
    Down,
    Left,
    Right,
}

/// The boards of the user.
#[service("/api/boards", safe)]
pub(crate) fn boards(call: &mut Call) -> Result<Vec<BoardEntry>, Error> {
    let groups = call.rights()?.groups();
    let entries = groups.iter().filter_map(|group| {
        let (board, may_write) = Board::of_group(group)?;
        let board = call.get(board)?;
        let lanes = call.find(Lane::BY_BOARD_POSITION, (board.id,)).collect();
        Some(BoardEntry { id: board.id, title: board.title, may_write, lanes })
    });
    Ok(entries.collect())
}

/// The cards of a board, by column and position.
#[service("/api/cards", safe)]
pub(crate) fn cards(call: &mut Call, board: Id<Board>) -> Result<Vec<Card>, Error> {
    if !call.rights()?.allows(&Board::path(board)) {
        return Err(Error::forbidden("you are no member of this board"));
    }
    let lanes = call.find(Lane::BY_BOARD_POSITION, (board,));
    Ok(lanes.flat_map(|lane| call.find(Card::BY_LANE_POSITION, (lane.id,))).collect())
}

#[service("/api/lanes/add")]
pub(crate) fn add_lane(call: &mut Call, board: Id<Board>, title: Text) -> Result<Id<Lane>, Error> {
    writer(call, board)?;
    let lanes: Vec<Lane> = call.find(Lane::BY_BOARD_POSITION, (board,)).collect();
    if lanes.len() >= MOST_LANES {
        let reason = format!("is one too many: a board has at most {MOST_LANES} columns");
        return Err(Error::invalid_argument("title", reason));
    }
    let position = lanes.last().map_or(0, |last| last.position + 1);
    Ok(call.insert(Lane { id: Id::unassigned(), board, title, position })?)
}

/// Removes a column. One with cards is rejected with 409.
#[service("/api/lanes/remove")]
pub(crate) fn remove_lane(call: &mut Call, lane: Id<Lane>) -> Result<(), Error> {
    let found = find_lane(call, lane)?;
    writer(call, found.board)?;
    if call.find(Card::BY_LANE_POSITION, (lane,)).next().is_some() {
        return Err(Error::conflict("Move the cards of this column first."));
    }
    call.remove(lane)?;
    Ok(())
}

#[service("/api/cards/add")]
pub(crate) fn add_card(call: &mut Call, lane: Id<Lane>, title: Text) -> Result<Id<Card>, Error> {
    let found = find_lane(call, lane)?;
    let author = writer(call, found.board)?;
    let position = free_position(call, lane)?;
    Ok(call.insert(Card {
        id: Id::unassigned(),
        lane,
        position,
        title,
        text: Text::default(),
        labels: Text::default(),
        assignee: None,
        due: None,
        author,
    })?)
}

/// Replaces all values of a card. `due` is a day, such as `2026-11-23`.
#[service("/api/cards/edit")]
pub(crate) fn edit_card(
    call: &mut Call,
    card: Id<Card>,
    title: Text,
    text: Text,
    labels: Text,
    assignee: Option<Text>,
    due: Option<Text>,
) -> Result<(), Error> {
    let (mut card, board) = find_card(call, card)?;
    writer(call, board)?;
    if let Some(name) = &assignee
        && !Board::has_member(&call.rights()?, call, board, name)
    {
        return Err(Error::invalid_argument("assignee", "must be a member of this board"));
    }
    // Noon is the same day in almost every time zone.
    let noon = |day: Text| {
        let noon = format!("{day}T12:00:00Z").parse::<Time>();
        noon.map_err(|_| Error::invalid_argument("due", "must be a day such as 2026-11-23"))
    };
    card.due = due.map(noon).transpose()?;
    card.labels = labels;
    card.title = title;
    card.text = text;
    card.assignee = assignee;
    call.replace(&card)?;
    Ok(())
}

/// Moves a card before another one of a column of the same board, or to its end.
#[service("/api/cards/move")]
pub(crate) fn move_card(
    call: &mut Call,
    card: Id<Card>,
    lane: Id<Lane>,
    before: Option<Id<Card>>,
) -> Result<(), Error> {
    let (card, board) = find_card(call, card)?;
    writer(call, board)?;
    if find_lane(call, lane)?.board != board {
        return Err(Error::invalid_argument("lane", "must be a column of the same board"));
    }
    let others = call.find(Card::BY_LANE_POSITION, (lane,)).filter(|other| other.id != card.id);
    let place = before.and_then(|before| others.into_iter().position(|other| other.id == before));
    place_card(call, card, lane, place.unwrap_or(usize::MAX))
}

/// Moves a card by one place, for the buttons of a card.
#[service("/api/cards/step")]
pub(crate) fn step_card(call: &mut Call, card: Id<Card>, to: Direction) -> Result<(), Error> {
    let (card, board) = find_card(call, card)?;
    writer(call, board)?;
    let cards = call.find(Card::BY_LANE_POSITION, (card.lane,));
    let place = cards.into_iter().position(|other| other.id == card.id).unwrap_or(0);
    let lanes: Vec<Id<Lane>> =
        call.find(Lane::BY_BOARD_POSITION, (board,)).map(|lane| lane.id).collect();
    let column = lanes.iter().position(|lane| *lane == card.lane).unwrap_or(0);
    let (column, place) = match to {
        Direction::Up => (column, place.saturating_sub(1)),
        Direction::Down => (column, place + 1),
        Direction::Left => (column.saturating_sub(1), place),
        Direction::Right => (column + 1, place),
    };
    let lane = lanes.get(column).copied().unwrap_or(card.lane);
    place_card(call, card, lane, place)
}

#[service("/api/cards/remove")]
pub(crate) fn remove_card(call: &mut Call, card: Id<Card>) -> Result<Response, Error> {
    let (card, board) = find_card(call, card)?;
    writer(call, board)?;
    if call.find(crate::Attachment::BY_CARD, card.id).next().is_some() {
        return Err(Error::conflict("Remove the files of this card first."));
    }
    call.remove(card.id)?;
    Ok(Response::see_other(format!("/board/{board}")))
}

#[service("/api/comments/add")]
pub(crate) fn add_comment(
    call: &mut Call,
    card: Id<Card>,
    text: Text,
) -> Result<Id<Comment>, Error> {
    let (card, board) = find_card(call, card)?;
    let author = writer(call, board)?;
    let written = Time::now();
    Ok(call.insert(Comment { id: Id::unassigned(), card: card.id, author, text, written })?)
}

/// Puts a card into a column at a place, and numbers the cards of the column again.
fn place_card(call: &mut Call, card: Card, lane: Id<Lane>, place: usize) -> Result<(), Error> {
    if card.lane != lane {
        free_position(call, lane)?;
    }
    let cards = call.find(Card::BY_LANE_POSITION, (lane,));
    let mut cards: Vec<Card> = cards.filter(|other| other.id != card.id).collect();
    let id = card.id;
    cards.insert(place.min(cards.len()), card);
    for (position, mut card) in (0_u32..).zip(cards) {
        if card.position != position || card.id == id {
            card.position = position;
            card.lane = lane;
            call.replace(&card)?;
        }
    }
    Ok(())
}

/// The position after the last card of a column.
fn free_position(call: &mut Call, lane: Id<Lane>) -> Result<u32, Error> {
    let cards: Vec<u32> =
        call.find(Card::BY_LANE_POSITION, (lane,)).map(|card| card.position).collect();
    if cards.len() >= MOST_CARDS {
        let reason = format!("is full: a column has at most {MOST_CARDS} cards");
        return Err(Error::invalid_argument("lane", reason));
    }
    Ok(cards.last().map_or(0, |last| last + 1))
}

fn find_lane(call: &Call, lane: Id<Lane>) -> Result<Lane, Error> {
    call.get(lane).ok_or_else(|| Error::not_found("there is no such column"))
}

fn find_card(call: &Call, card: Id<Card>) -> Result<(Card, Id<Board>), Error> {
    let card = call.get(card).ok_or_else(|| Error::not_found("there is no such card"))?;
    let board = find_lane(call, card.lane)?.board;
    Ok((card, board))
}

fn user(call: &Call) -> Result<Text, Error> {
    call.user().map(|user| user.0).ok_or_else(|| Error::unauthorized("log in first"))
}

/// The name of the caller, with the right to change the board.
fn writer(call: &Call, board: Id<Board>) -> Result<Text, Error> {
    if !call.rights()?.is_in(&Board::team(board)) {
        return Err(Error::forbidden("only the team of a board may change it"));
    }
    user(call)
}
