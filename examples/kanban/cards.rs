//! The page of a card, and its attachments.

use std::fs;

use bine::prelude::*;
use bine::{Rights, random_token};

use crate::Files;
use crate::api;
use crate::tables::{Attachment, Board, Card, Comment, Lane};

const MOST_BYTES: u64 = 5 << 20;
const MOST_FILES: usize = 20;
const ENDINGS: [&str; 7] = ["png", "jpg", "jpeg", "gif", "webp", "pdf", "txt"];

#[page("/board/{board}/cards/{card}")]
pub(crate) async fn card(
    store: Store,
    rights: Rights,
    board: Path<Id<Board>>,
    card: Path<Id<Card>>,
) -> Result<impl Respond, Error> {
    let now = store.read();
    let (card, lane) = find(&store, board.0, card.0)?;
    let address = format!("/board/{}/cards/{}", board.0, card.id);
    let may_write = rights.is_in(&Board::team(board.0));
    let mut members = rights.members(&Board::team(board.0));
    members.extend(rights.members(&Board::readers(board.0)));
    let comments: Vec<Comment> = now.find(Comment::BY_CARD, card.id).collect();
    let files: Vec<Attachment> = now.find(Attachment::BY_CARD, card.id).collect();
    let (id, title) = (card.id.to_string(), card.title.to_string());
    Ok(html! {
        <p><a href={format_args!("/board/{}", board.0)}>Back to the board</a></p>
        <Live>
            <h1>{&card.title}</h1>
            <p class="facts">In {lane.title}, by {&card.author}</p>
            {if may_write {
                {edit_form(&card, &members)}
            } else {
                <p class="text">{&card.text}</p>
            }}
        </Live>
        <h2>Files</h2>
        <Live>
            <ul class="files">
                {for file in files {
                    <li id={format_args!("f{}", file.id)}>
                        <a href={format_args!("/board/{}/files/{}", board.0, file.id)}>{&file.name}</a>
                        <small>{file.length.div_ceil(1024)} KiB, by {&file.author}</small>
                        {if may_write {
                            <form method="post" action={format_args!("/board/{}/files/{}", board.0, file.id)}>
                                <button class="quiet" aria-label={format_args!("Remove {}", file.name)}>"\u{d7}"</button>
                            </form>
                        }}
                    </li>
                }}
            </ul>
            {if may_write {
                <form id="attach" method="post" action={format_args!("{address}/files")} enctype="multipart/form-data" class="row">
                    <input type="file" name="file" aria-label="File" accept=".png,.jpg,.jpeg,.gif,.webp,.pdf,.txt" required>
                    <button>Attach</button>
                </form>
            }}
        </Live>
        <h2>Comments</h2>
        <Live>
            <ul class="comments" aria-live="polite">
                {for comment in comments {
                    <li id={format_args!("m{}", comment.id)}>
                        <b>{comment.author}</b> <small>{time!(comment.written, relative)}</small>
                        <p class="text">{comment.text}</p>
                    </li>
                }}
            </ul>
            {if may_write {
                <form id="comment" method="post" action={api::add_comment} class="fields">
                    <input type="hidden" name="card" value={&id}>
                    <textarea name="text" aria-label="Comment" rows="3" required></textarea>
                    <button>Comment</button>
                </form>
                <form id="remove" method="post" action={api::remove_card} data-on="submit: confirm 'Remove this card?'">
                    <input type="hidden" name="card" value={&id}>
                    <button class="quiet">Remove this card</button>
                </form>
            }}
        </Live>
    }
    .with_title(title))
}

fn edit_form(card: &Card, members: &[Text]) -> impl Html<Flow> {
    html! {
        <form id="card" method="post" action={api::edit_card} class="fields" data-keep>
            <input type="hidden" name="card" value={card.id.to_string()}>
            <label>Title <input name="title" value={&card.title} required></label>
            <label>Description <textarea name="text" rows="5">{&card.text}</textarea></label>
            <label>Labels <input name="labels" value={&card.labels} placeholder="bug, urgent"></label>
            <label>
                Assignee
                <select name="assignee">
                    <option value="">Nobody</option>
                    {for member in members {
                        <option value={member} selected={card.assignee.as_ref() == Some(member)}>{member}</option>
                    }}
                </select>
            </label>
            <label>Due <input type="date" name="due" value={card.due_day()}></label>
            <button>Save</button>
        </form>
    }
}

/// The rule for the path is about the board in it, so the card must be a card of that board.
fn find(store: &Store, board: Id<Board>, card: Id<Card>) -> Result<(Card, Lane), Error> {
    let now = store.read();
    let found = now.get(card).and_then(|card| {
        let lane = now.get(card.lane)?;
        (lane.board == board).then_some((card, lane))
    });
    found.ok_or_else(|| Error::not_found("There is no such card."))
}

/// Stores a file, then its row. A crash between both leaves a file without a row, which no address
/// reaches.
#[page(POST "/board/{board}/cards/{card}/files")]
pub(crate) fn attach(
    store: Store,
    files: State<Files>,
    user: User,
    board: Path<Id<Board>>,
    card: Path<Id<Card>>,
    file: Upload,
) -> Result<Response, Error> {
    let (card, _) = find(&store, board.0, card.0)?;
    let (_, ending) = file.file_name().rsplit_once('.').unwrap_or_default();
    let ending = ending.to_ascii_lowercase();
    if !ENDINGS.contains(&&*ending) {
        let reason = format!("must be one of these: {}", ENDINGS.join(", "));
        return Err(Error::invalid_argument("file", reason));
    }
    if file.length() > MOST_BYTES {
        return Err(Error::invalid_argument("file", "must have at most 5 MiB"));
    }
    if store.read().find(Attachment::BY_CARD, card.id).count() >= MOST_FILES {
        let reason = format!("is one too many: a card has at most {MOST_FILES}");
        return Err(Error::invalid_argument("file", reason));
    }
    // The client chose the name of the file: it is shown, and no part of the path.
    let stored = format!("{}.{ending}", random_token());
    file.save(files.0.join(&stored))?;
    let row = store.insert(Attachment {
        id: Id::unassigned(),
        card: card.id,
        name: file.file_name().chars().take(120).collect::<String>().into(),
        file: stored.as_str().into(),
        length: file.length(),
        author: user.0,
    });
    if let Err(error) = row.wait() {
        fs::remove_file(files.0.join(&stored))?;
        return Err(error.into());
    }
    Ok(Response::see_other(format!("/board/{}/cards/{}", board.0, card.id)))
}

#[page("/board/{board}/files/{file}")]
pub(crate) fn attachment(
    store: Store,
    files: State<Files>,
    board: Path<Id<Board>>,
    file: Path<Id<Attachment>>,
) -> Result<Response, Error> {
    let found = find_file(&store, board.0, file.0)?;
    Response::file(files.0.join(&*found.file))
}

#[page(POST "/board/{board}/files/{file}")]
pub(crate) fn detach(
    store: Store,
    files: State<Files>,
    board: Path<Id<Board>>,
    file: Path<Id<Attachment>>,
) -> Result<Response, Error> {
    let found = find_file(&store, board.0, file.0)?;
    store.remove(found.id).wait()?;
    fs::remove_file(files.0.join(&*found.file))?;
    Ok(Response::see_other(format!("/board/{}/cards/{}", board.0, found.card)))
}

fn find_file(store: &Store, board: Id<Board>, file: Id<Attachment>) -> Result<Attachment, Error> {
    let found = store.read().get(file).ok_or_else(|| Error::not_found("There is no such file."))?;
    find(store, board, found.card)?;
    Ok(found)
}
