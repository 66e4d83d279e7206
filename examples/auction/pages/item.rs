//! Pages for one item and its bids.

use bine::prelude::*;

use super::{bids, day, left, style};
use crate::auction::{Auction, found};
use crate::tables::{Bid, Item, Key, OldItem, User};

/// The number of bids on a page, newest first.
const BIDS: usize = 50;

#[page("/items/{item}")]
pub(crate) fn view_item(auction: Auction, item: Path<Key<Item>>) -> Result<impl Respond, Error> {
    let now = auction.read();
    let item = found(now.get(item.0.0), "item")?;
    let seller = found(now.get(item.seller), "seller")?;
    let title = item.name.to_string();
    let page = html! {
        <h1>{item.name}</h1>
        <dl>
            <dt>{if item.bids == 0 { "Begins at" } else { "Highest bid" }}</dt>
            <dd class={style::price}>"$"{item.price()}</dd>
            <dt>Bids</dt>
            <dd><a href={format_args!("/items/{}/bids", item.id)}>{item.bids}</a></dd>
            <dt>Time</dt>
            <dd>{if item.quantity > 0 { {left(item.ends)} } else { "sold" }}</dd>
            <dt>Reserve</dt>
            <dd>{reserve(&item)}</dd>
            <dt>Quantity</dt>
            <dd>{item.quantity}</dd>
            <dt>Seller</dt>
            <dd>
                <a href={format_args!("/users/{}", seller.id)}>{seller.name}</a>" ("{seller.rating}") "
                <a href={format_args!("/users/{}/comment?item={}", seller.id, item.id)}>Comment</a>
            </dd>
        </dl>
        {if item.is_open() {
            <p class={style::actions}>
                <a href={format_args!("/items/{}/bid", item.id)}>Bid for it</a>
                {if let Some(price) = item.buy_now {
                    <a href={format_args!("/items/{}/buy", item.id)}>"Buy it now for $"{price}</a>
                }}
            </p>
        }}
        <h2>Description</h2>
        <p>{item.description}</p>
    };
    Ok(page.with_title(title))
}

fn reserve(item: &Item) -> &'static str {
    match item.reserve {
        None => "none",
        Some(price) if item.bids > 0 && item.highest >= price => "reached",
        Some(_) => "not reached",
    }
}

/// An item sold earlier.
#[page("/sold/{item}")]
pub(crate) fn view_old_item(
    auction: Auction,
    item: Path<Key<OldItem>>,
) -> Result<impl Respond, Error> {
    let now = auction.read();
    let item = found(now.get(item.0.0), "item")?;
    let seller = found(now.get(item.seller), "seller")?;
    let title = item.name.to_string();
    let page = html! {
        <h1>{item.name}</h1>
        <p>
            {if item.buyer.is_some() { "Sold" } else { "Not sold; it began" }}
            " for $"{item.price} after {bids(item.bids)}", on "{day(item.ended)}, by
            <a href={format_args!("/users/{}", seller.id)}>{seller.name}</a>"."
        </p>
        <p>{item.description}</p>
    };
    Ok(page.with_title(title))
}

#[page("/items/{item}/bids")]
pub(crate) fn bid_history(auction: Auction, item: Path<Key<Item>>) -> Result<impl Respond, Error> {
    let now = auction.read();
    let item = found(now.get(item.0.0), "item")?;
    let made = now.find(Bid::BY_ITEM, item.id).rev().take(BIDS);
    let made: Vec<(Bid, User)> =
        made.filter_map(|bid| now.get(bid.bidder).map(|bidder| (bid, bidder))).collect();
    let (title, is_empty) = (format!("Bids for {}", item.name), made.is_empty());
    let page = html! {
        <h1>Bids for {item.name}</h1>
        <p><a href={format_args!("/items/{}", item.id)}>Back to the item</a></p>
        {if is_empty {
            <p>Nobody has bid yet.</p>
        } else {
            <ul class={style::listing}>
                {for (bid, bidder) in made {
                    <li>
                        <a href={format_args!("/users/{}", bidder.id)}>{bidder.name}</a>" "
                        <span class={style::price}>"$"{bid.amount}</span>" "
                        <span class={style::note}>{day(bid.made)}</span>
                    </li>
                }}
            </ul>
        }}
    };
    Ok(page.with_title(title))
}
