//! Boards: the list, a board with its columns and cards, and the people of a board.

use bine::prelude::*;
use bine::store::Snapshot;
use bine::{Right, Rights, Who, random_token};

use crate::api;
use crate::tables::{Attachment, Board, Card, Comment, Lane};

#[page("/")]
pub(crate) async fn home(store: Store, user: Option<User>, rights: Rights) -> impl Respond {
    html! {
        {match user {
            None => {
                <h1>A board for each team</h1>
                <p><a href="/sign-up">Sign up</a> or <a href="/log-in">log in</a> to see your boards.</p>
            }
            Some(_) => {
                <h1>Boards</h1>
                <Live><ul class="boards">
                    {for (board, is_member) in boards_of(&store.read(), &rights) {
                        <li id={format_args!("b{}", board.id)}>
                            <a href={format_args!("/board/{}", board.id)}>{board.title}</a>
                            <small>{if is_member { "yours" } else { "to read" }}</small>
                        </li>
                    }}
                </ul></Live>
                <h2>New board</h2>
                <form method="post" action="/boards" class="fields">
                    <label>Title <input name="title" maxlength="80" required></label>
                    <label class="check"><input type="checkbox" name="is_public"> All users may read it</label>
                    <button>Create</button>
                </form>
            }
        }}
    }
    .with_title("Boards")
}

/// The boards that the user may read, and whether the user is a member.
fn boards_of(now: &Snapshot, rights: &Rights) -> Vec<(Board, bool)> {
    let sees_all = rights.is_in("administrators");
    let boards = now.all::<Board>().map(|board| {
        let groups = [Board::team(board.id), Board::readers(board.id)];
        let is_member = groups.iter().any(|group| rights.is_in(group));
        (board, is_member)
    });
    boards.filter(|(board, is_member)| *is_member || board.is_public || sees_all).collect()
}

#[page(POST "/boards")]
pub(crate) async fn create(
    store: Store,
    rights: Rights,
    user: User,
    title: Form<Text>,
    is_public: Form<bool>,
) -> Result<Response, Error> {
    let board = store.change(|change| {
        let board = change.insert(Board {
            id: Id::unassigned(),
            title: title.0.clone(),
            owner: user.0.clone(),
            is_public: is_public.0,
            invitation: random_token().into(),
        })?;
        for (position, title) in (0..).zip(["To do", "Doing", "Done"]) {
            change.insert(Lane { id: Id::unassigned(), board, title: title.into(), position })?;
        }
        let (pattern, team) = (Board::pattern(board), Board::team(board));
        rights.add_to_group_in(change, &user.0, &team)?;
        rights.grant_in(change, Who::group(team), Right::Write, &pattern)?;
        let readers = Who::group(Board::readers(board));
        rights.grant_in(change, readers, Right::Read, &pattern)?;
        rights.grant_in(change, Who::Administrators, Right::Write, &pattern)?;
        if is_public.0 {
            rights.grant_in(change, Who::Users, Right::Read, &pattern)?;
        }
        Ok::<_, Error>(board)
    });
    Ok(Response::see_other(Board::path(board.await?)))
}

/// A card as a board shows it, with the numbers of its comments and files.
type ShownCard = (Card, usize, usize);

#[page("/board/{board}")]
pub(crate) async fn board(
    store: Store,
    rights: Rights,
    presence: Presence,
    user: User,
    board: Path<Id<Board>>,
) -> Result<impl Respond, Error> {
    let now = store.read();
    let board = now.get(board.0).ok_or_else(no_board)?;
    let may_write = rights.is_in(&Board::team(board.id));
    let manages = rights.is_same_user(&user.0, &board.owner) || rights.is_in("administrators");
    let lanes: Vec<Lane> = now.find(Lane::BY_BOARD_POSITION, (board.id,)).collect();
    let team = rights.members(&Board::team(board.id)).into_iter().map(|user| (user, true));
    let readers = rights.members(&Board::readers(board.id)).into_iter().map(|user| (user, false));
    let people: Vec<(Text, bool)> = team.chain(readers).collect();
    let title = board.title.to_string();
    Ok(html! {
        <div class="board-head">
            <h1>{board.title}</h1>
            <Live><p class="presence">{presence.people()} here: {presence.names(20).join(", ")}</p></Live>
        </div>
        <Live>
            <div class="board" id="board" aria-live="polite">
                {for lane in lanes {
                    {let cards = cards_of(&now, lane.id);}
                    {show_lane(lane, cards, may_write)}
                }}
                {if may_write {
                    <section class="lane new" id="new-lane">
                        <form method="post" action={api::add_lane}>
                            <input type="hidden" name="board" value={board.id.to_string()}>
                            <input name="title" aria-label="New column" placeholder="New column" maxlength="40" required>
                            <button>Add</button>
                        </form>
                    </section>
                }}
            </div>
            <p id="moved" role="status"></p>
            <details class="people" id="people">
                <summary>People</summary>
                <ul>
                    {for (person, writes) in people {
                        <li>
                            <span>{&person} <small>{if writes { "may write" } else { "only reads" }}</small></span>
                            {if manages && !rights.is_same_user(&person, &board.owner) {
                                <form method="post" action={format_args!("/board/{}/people", board.id)}>
                                    <input type="hidden" name="user" value={&person}>
                                    <button class="quiet" name="role" value={if writes { "reader" } else { "writer" }}>
                                        {if writes { "Only read" } else { "Let write" }}
                                    </button>
                                    <button class="quiet" name="role" value="none">Remove</button>
                                </form>
                            }}
                        </li>
                    }}
                </ul>
                {if manages {
                    <p>Whoever has this link can join the team:</p>
                    <p><code>{format!("/join/{}", board.invitation)}</code></p>
                }}
            </details>
        </Live>
        <script type="module" src="/board.js"></script>
    }
    .with_title(title))
}

fn cards_of(now: &Snapshot, lane: Id<Lane>) -> Vec<ShownCard> {
    let counted = |card: Card| {
        let comments = now.find(Comment::BY_CARD, card.id).count();
        let files = now.find(Attachment::BY_CARD, card.id).count();
        (card, comments, files)
    };
    now.find(Card::BY_LANE_POSITION, (lane,)).map(counted).collect()
}

fn show_lane(lane: Lane, cards: Vec<ShownCard>, may_write: bool) -> impl Html<Flow> {
    let (id, board) = (lane.id.to_string(), lane.board);
    let is_empty = cards.is_empty();
    html! {
        <section class="lane" id={format_args!("l{id}")} data-lane={may_write.then(|| id.clone())}>
            <header>
                <h2>{lane.title} <small>{cards.len()}</small></h2>
                {if may_write && is_empty {
                    <form method="post" action={api::remove_lane}>
                        <input type="hidden" name="lane" value={&id}>
                        <button class="quiet" aria-label="Remove this column">"\u{d7}"</button>
                    </form>
                }}
            </header>
            <ol>{for card in cards { {show_card(card, board, may_write)} }}</ol>
            {if may_write {
                <form method="post" action={api::add_card} class="add">
                    <input type="hidden" name="lane" value={&id}>
                    <input name="title" aria-label="New card" placeholder="New card" maxlength="120" required>
                    <button>Add</button>
                </form>
            }}
        </section>
    }
}

fn show_card(shown: ShownCard, board: Id<Board>, may_write: bool) -> impl Html<Parts> {
    let (card, comments, files) = shown;
    let id = card.id.to_string();
    let is_late = card.due.is_some_and(|due| due < Time::now());
    let steps = [
        ("left", "Left", "\u{2190}"),
        ("up", "Up", "\u{2191}"),
        ("down", "Down", "\u{2193}"),
        ("right", "Right", "\u{2192}"),
    ];
    html! {
        <li class="card" id={format_args!("c{id}")} data-card={&id} draggable={if may_write { "true" } else { "false" }}>
            <a href={format_args!("/board/{board}/cards/{id}")} draggable="false">{&card.title}</a>
            <p class="facts">
                {for label in card.labels() { <span class="label" data-label={label}>{label}</span> }}
                {if let Some(due) = card.due { <span class={if is_late { "late" } else { "due" }}>{time!(due, date)}</span> }}
                {if let Some(name) = &card.assignee { <span class="assignee">"@"{name}</span> }}
                {if comments > 0 { <span>{comments} {if comments == 1 { "comment" } else { "comments" }}</span> }}
                {if files > 0 { <span>{files} {if files == 1 { "file" } else { "files" }}</span> }}
            </p>
            {if may_write {
                <form method="post" action={api::step_card} class="steps">
                    <input type="hidden" name="card" value={&id}>
                    {for (value, word, arrow) in steps {
                        <button class="quiet" name="to" value={value} aria-label={format_args!("{word}: {}", card.title)}>{arrow}</button>
                    }}
                </form>
            }}
        </li>
    }
}

#[page("/join/{invitation}")]
pub(crate) async fn invitation(
    store: Store,
    invitation: Path<Text>,
) -> Result<impl Respond, Error> {
    let board = store.read().one(Board::BY_INVITATION, &**invitation).ok_or_else(no_board)?;
    Ok(html! {
        <h1>Join {board.title}</h1>
        <p>{board.owner} invites you to the team of this board.</p>
        <form method="post"><button>Join</button></form>
    }
    .with_title("Join"))
}

#[page(POST "/join/{invitation}")]
pub(crate) async fn join(
    store: Store,
    rights: Rights,
    user: User,
    invitation: Path<Text>,
) -> Result<Response, Error> {
    let board = store.read().one(Board::BY_INVITATION, &**invitation).ok_or_else(no_board)?.id;
    let joined = store.change(|change| {
        // A member who only reads does not become a writer by joining again.
        if Board::has_member(&rights, change, board, &user.0) {
            return Ok(());
        }
        rights.add_to_group_in(change, &user.0, &Board::team(board))?;
        Ok::<_, Error>(())
    });
    joined.await?;
    Ok(Response::see_other(Board::path(board)))
}

/// Changes or removes a member: `role` is `writer`, `reader` or `none`. Names of users are compared as
/// rights do, since the list of people has the stored form.
#[page(POST "/board/{board}/people")]
pub(crate) async fn change_member(
    store: Store,
    rights: Rights,
    caller: User,
    board: Path<Id<Board>>,
    user: Form<Text>,
    role: Form<Text>,
) -> Result<Response, Error> {
    let board = store.read().get(board.0).ok_or_else(no_board)?;
    if !rights.is_same_user(&caller.0, &board.owner) && !rights.is_in("administrators") {
        return Err(Error::forbidden("only the owner of a board changes its people"));
    }
    if rights.is_same_user(&user.0, &board.owner) {
        return Err(Error::conflict("the owner of a board stays in its team"));
    }
    if !["writer", "reader", "none"].contains(&&*role.0) {
        return Err(Error::invalid_argument("role", "must be writer, reader or none"));
    }
    let (id, role) = (board.id, role.0);
    let change = store.change(|change| {
        if !Board::has_member(&rights, change, id, &user.0) {
            return Err(Error::not_found("there is no such member"));
        }
        let groups = [("writer", Board::team(id)), ("reader", Board::readers(id))];
        for (name, group) in &groups {
            if *name == &*role {
                rights.add_to_group_in(change, &user.0, group)?;
            } else {
                rights.remove_from_group_in(change, &user.0, group)?;
            }
        }
        if &*role == "none" {
            // The former member knows the link.
            change.update(id, |board| board.invitation = random_token().into())?;
        }
        Ok(())
    });
    change.await?;
    Ok(Response::see_other(Board::path(id)))
}

fn no_board() -> Error {
    Error::not_found("There is no such board.")
}
