//! Pages for bidding.

use bine::prelude::*;

use super::{bids, login, style};
use crate::auction::{Auction, found};
use crate::tables::{Bid, Item, Key, User};

#[page("/items/{item}/bid")]
pub(crate) fn bid_form(auction: Auction, item: Path<Key<Item>>) -> Result<impl Respond, Error> {
    let item = found(auction.read().get(item.0.0), "item")?;
    let page = html! {
        <h1>Who bids for {item.name}"?"</h1>
        <p><a href={format_args!("/items/{}", item.id)}>Back to the item</a></p>
        {login(format!("/items/{}/bid", item.id), "Go on")}
    };
    Ok(page.with_title("Log in to bid"))
}

#[page(POST "/items/{item}/bid")]
pub(crate) fn put_bid(
    auction: Auction,
    item: Path<Key<Item>>,
    name: Form<Text>,
    password: Form<Text>,
) -> Result<impl Respond, Error> {
    let now = auction.read();
    let (_, pass) = auction.log_in(&now, &name, &password)?;
    let item = open(now.get(item.0.0))?;
    let seller = found(now.get(item.seller), "seller")?;
    Ok(amount(item, seller, pass, None).with_title("Your bid"))
}

/// The result of a bid.
enum Outcome {
    Kept(Item),
    /// A higher bid arrived first, so the minimum has increased.
    TooLow(Item, User),
}

#[page(POST "/items/{item}/bids")]
pub(crate) fn store_bid(
    auction: Auction,
    item: Path<Key<Item>>,
    pass: Form<Text>,
    amount: Form<u32>,
) -> Result<impl Respond, Error> {
    let (bidder, amount, id) = (auction.bearer(&pass)?, amount.0, item.0.0);
    let outcome = auction.change(|change| {
        let mut item = open(change.get(id))?;
        if amount < item.least_bid() {
            let seller = found(change.get(item.seller), "seller")?;
            return Ok(Outcome::TooLow(item, seller));
        }
        change.insert(Bid { id: Id::unassigned(), item: id, bidder, amount, made: Time::now() })?;
        item.bids += 1;
        item.highest = amount;
        change.replace(&item)?;
        Ok(Outcome::Kept(item))
    })?;
    let pass = auction.pass(bidder);
    let page = html! {
        {match outcome {
            Outcome::Kept(item) => {
                <h1>Your bid counts</h1>
                <p>
                    "$"{amount}" is the highest for "<a href={format_args!("/items/{}", id)}>{item.name}</a>" so far."
                </p>
            }
            Outcome::TooLow(item, seller) => { {super::bid::amount(item, seller, pass, Some(amount))} }
        }}
    };
    Ok(page.with_title("Your bid"))
}

/// The form for the amount; `too_low` is a rejected amount.
fn amount(item: Item, seller: User, pass: String, too_low: Option<u32>) -> impl Html<Flow> {
    let least = item.least_bid();
    html! {
        <h1>How much for {item.name}"?"</h1>
        {if let Some(amount) = too_low {
            <p role="alert" class={style::warning}>"$"{amount}" is not enough any more: others have bid, too."</p>
        }}
        <p>
            {if item.bids == 0 { "Nobody has bid yet. " } else {
                "The highest of "<a href={format_args!("/items/{}/bids", item.id)}>{bids(item.bids)}</a>" is $"{item.highest}". "
            }}
            <a href={format_args!("/items/{}", item.id)}>The item</a>", by "
            <a href={format_args!("/users/{}", seller.id)}>{seller.name}</a>"."
        </p>
        <form method="post" action={format_args!("/items/{}/bids", item.id)}>
            <input type="hidden" name="pass" value={pass}>
            <label>Dollars <input type="number" name="amount" min={least} max="1000000000" value={least} required></label>
            <button>Bid</button>
        </form>
    }
}

/// The item, if it is still for sale.
pub(crate) fn open(item: Option<Item>) -> Result<Item, Error> {
    let item = found(item, "item")?;
    if item.is_open() {
        return Ok(item);
    }
    let why = if item.quantity == 0 { "it was sold" } else { "its time is over" };
    Err(Error::status(Status::CONFLICT, format!("this auction has ended: {why}")))
}
