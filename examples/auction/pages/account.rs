//! Pages for registration, user profiles and a user's own overview.

use bine::prelude::*;

use super::browse::region_of;
use super::{day, left, login, style};
use crate::access;
use crate::auction::{Auction, found};
use crate::database::Snapshot;
use crate::tables::{Bid, Comment, Item, Key, OldItem, Purchase, Region, User};

/// The number of rows of each kind on a page, newest first.
const ROWS: usize = 20;

#[page("/register")]
pub(crate) fn register_form(auction: Auction) -> impl Respond {
    let regions: Vec<_> = auction.read().all::<Region>().collect();
    html! {
        <h1>Become a user</h1>
        <form method="post" action="/register">
            <label>First name <input name="first" autocomplete="given-name" maxlength="40" required autofocus></label>
            <label>Last name <input name="last" autocomplete="family-name" maxlength="40" required></label>
            <label>
                "Name in this house, from 3 letters on "
                <input name="name" autocomplete="username" minlength="3" maxlength="40" required>
            </label>
            <label>
                "Password, from 8 letters on "
                <input type="password" name="password" autocomplete="new-password" minlength="8" maxlength="100" required>
            </label>
            <label>
                Region
                <select name="region">
                    {for region in regions { <option value={region.slug}>{region.name}</option> }}
                </select>
            </label>
            <button>Register</button>
        </form>
    }
    .with_title("Register")
}

#[page(POST "/register")]
pub(crate) fn register_user(
    auction: Auction,
    first: Form<Text>,
    last: Form<Text>,
    name: Form<Text>,
    password: Form<Text>,
    region: Form<Text>,
) -> Result<impl Respond, Error> {
    if !(8..=100).contains(&password.chars().count()) {
        return Err(Error::invalid_argument("password", "must have from 8 to 100 letters"));
    }
    let salt = access::random::<16>()?.to_vec();
    let hashed = access::hashed(&password, &salt);
    let user = auction.change(|change| {
        if change.one(User::BY_NAME, &**name).is_some() {
            let taken = format!("the name {} is taken; please choose another", name.0);
            return Err(Error::status(Status::CONFLICT, taken));
        }
        let region = region_of(change, &region)?.id;
        Ok(change.insert(User {
            id: Id::unassigned(),
            name: name.0.clone(),
            salt: salt.clone(),
            password: hashed.clone(),
            first: first.0.clone(),
            last: last.0.clone(),
            region,
            rating: 0,
            since: Time::now(),
        })?)
    })?;
    let page = html! {
        <h1>Welcome, {first.0}</h1>
        <p>
            "You are "<a href={format_args!("/users/{user}")}>{name.0}</a>" in this house. "
            <a href="/browse">Look around</a>", or "<a href="/sell">sell something</a>"."
        </p>
    };
    Ok(page.with_title("Welcome"))
}

#[page("/users/{user}")]
pub(crate) fn user_info(auction: Auction, user: Path<Key<User>>) -> Result<impl Respond, Error> {
    let now = auction.read();
    let user = found(now.get(user.0.0), "user")?;
    let title = user.name.to_string();
    let profile = profile(&now, &user);
    Ok(html!(<h1>{user.name}</h1> {profile}).with_title(title))
}

/// The public profile of a user.
fn profile(now: &Snapshot, user: &User) -> impl Html<Flow> + use<> {
    let (rating, since) = (user.rating, day(user.since));
    let region = now.get(user.region).map(|region| region.name);
    let comments = now.find(Comment::BY_TO, user.id).rev().take(ROWS);
    let comments: Vec<_> =
        comments.filter_map(|comment| now.get(comment.from).map(|from| (comment, from))).collect();
    html! {
        <dl>
            <dt>Rating</dt>
            <dd>{rating}</dd>
            <dt>Region</dt>
            <dd>{region}</dd>
            <dt>Since</dt>
            <dd>{since}</dd>
        </dl>
        {if comments.is_empty() {
            <p>Nobody has said anything yet.</p>
        } else {
            <h2>What others say</h2>
            {for (comment, from) in comments {
                <article class={style::said}>
                    <a href={format_args!("/users/{}", from.id)}>{from.name}</a>" "
                    <span class={style::note}>
                        {format_args!("{:+}", comment.rating)}", about "{comment.about}", on "{day(comment.made)}
                    </span>
                    <blockquote>{comment.words}</blockquote>
                </article>
            }}
        }}
    }
}

#[page("/me")]
pub(crate) fn about_me_form() -> impl Respond {
    html!(<h1>Who are you?</h1> {login("/me".to_owned(), "Show me")}).with_title("About me")
}

/// One line about an item: its name and address, a price, and its state.
struct Line {
    path: String,
    name: Text,
    sum: u32,
    state: String,
}

#[page(POST "/me")]
pub(crate) fn about_me(
    auction: Auction,
    name: Form<Text>,
    password: Form<Text>,
) -> Result<impl Respond, Error> {
    let now = auction.read();
    let (user, _) = auction.log_in(&now, &name, &password)?;
    let profile = profile(&now, &user);
    let lists = [
        ("Your bids", bids(&now, user.id)),
        ("What you sell", sales(&now, user.id)),
        ("What you bought at once", purchases(&now, user.id)),
        ("What you won", old(now.find(OldItem::BY_BUYER, Some(user.id)).rev().take(ROWS))),
        ("What you have sold", old(now.find(OldItem::BY_SELLER, user.id).rev().take(ROWS))),
        ("New in the house", now.newest::<Item>(5).into_iter().map(item).collect()),
    ];
    let page = html! {
        <h1>About <a href={format_args!("/users/{}", user.id)}>{user.name}</a></h1>
        {profile}
        {for (title, lines) in lists {
            {if !lines.is_empty() {
                <h2>{title}</h2>
                <ul class={style::listing}>
                    {for line in lines {
                        <li>
                            <a href={line.path}>{line.name}</a>" "
                            <span class={style::price}>"$"{line.sum}</span>" "
                            <span class={style::note}>{line.state}</span>
                        </li>
                    }}
                </ul>
            }}
        }}
    };
    Ok(page.with_title("About me"))
}

fn item(item: Item) -> Line {
    let state = left(item.ends);
    Line { path: format!("/items/{}", item.id), sum: item.price(), name: item.name, state }
}

fn bids(now: &Snapshot, user: Id<User>) -> Vec<Line> {
    let bids = now.find(Bid::BY_BIDDER, user).rev().take(ROWS);
    let lines = bids.filter_map(|bid| {
        let of = now.get(bid.item)?;
        let is_highest = of.highest == bid.amount;
        let state = if is_highest { "the highest" } else { "others have bid more" };
        Some(Line { sum: bid.amount, state: state.to_owned(), ..item(of) })
    });
    lines.collect()
}

fn sales(now: &Snapshot, user: Id<User>) -> Vec<Line> {
    now.find(Item::BY_SELLER, user).rev().take(ROWS).map(item).collect()
}

fn purchases(now: &Snapshot, user: Id<User>) -> Vec<Line> {
    let bought = now.find(Purchase::BY_BUYER, user).rev().take(ROWS);
    let lines = bought.filter_map(|bought| {
        let state = format!("{}, on {}", bought.quantity, day(bought.made));
        Some(Line { sum: bought.price, state, ..item(now.get(bought.item)?) })
    });
    lines.collect()
}

fn old(items: impl Iterator<Item = OldItem>) -> Vec<Line> {
    let lines = items.map(|item| Line {
        path: format!("/sold/{}", item.id),
        name: item.name,
        sum: item.price,
        state: day(item.ended),
    });
    lines.collect()
}
