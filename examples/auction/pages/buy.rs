//! Pages for buying at once, for the price set by the seller.

use bine::prelude::*;

use super::bid::open;
use super::login;
use crate::auction::{Auction, found};
use crate::tables::{Item, Key, Purchase};

#[page("/items/{item}/buy")]
pub(crate) fn buy_now_form(auction: Auction, item: Path<Key<Item>>) -> Result<impl Respond, Error> {
    let item = found(auction.read().get(item.0.0), "item")?;
    let page = html! {
        <h1>Who buys {item.name}"?"</h1>
        <p><a href={format_args!("/items/{}", item.id)}>Back to the item</a></p>
        {login(format!("/items/{}/buy", item.id), "Go on")}
    };
    Ok(page.with_title("Log in to buy"))
}

#[page(POST "/items/{item}/buy")]
pub(crate) fn buy_now(
    auction: Auction,
    item: Path<Key<Item>>,
    name: Form<Text>,
    password: Form<Text>,
) -> Result<impl Respond, Error> {
    let now = auction.read();
    let (_, pass) = auction.log_in(&now, &name, &password)?;
    let item = open(now.get(item.0.0))?;
    let (price, most) = (price(&item)?, item.quantity);
    let seller = found(now.get(item.seller), "seller")?;
    let page = html! {
        <h1>Buy {item.name} now</h1>
        <p>
            "$"{price}" each; "{most}" of "<a href={format_args!("/items/{}", item.id)}>them</a>" are left. Sold by "
            <a href={format_args!("/users/{}", seller.id)}>{seller.name}</a>"."
        </p>
        <form method="post" action={format_args!("/items/{}/purchases", item.id)}>
            <input type="hidden" name="pass" value={pass}>
            <label>
                How many <input type="number" name="quantity" min="1" max={most.min(10_000)} value="1" required>
            </label>
            <button>Buy</button>
        </form>
    };
    Ok(page.with_title("Buy now"))
}

#[page(POST "/items/{item}/purchases")]
pub(crate) fn store_buy_now(
    auction: Auction,
    item: Path<Key<Item>>,
    pass: Form<Text>,
    quantity: Form<u32>,
) -> Result<impl Respond, Error> {
    let (buyer, quantity, id) = (auction.bearer(&pass)?, quantity.0, item.0.0);
    let (item, price) = auction.change(|change| {
        let mut item = open(change.get(id))?;
        let price = price(&item)?;
        if quantity > item.quantity {
            return Err(Error::invalid_argument(
                "quantity",
                format!("must be {} at most", item.quantity),
            ));
        }
        let made = Time::now();
        change.insert(Purchase { id: Id::unassigned(), item: id, buyer, quantity, price, made })?;
        item.quantity -= quantity;
        change.replace(&item)?;
        Ok((item, price))
    })?;
    let page = html! {
        <h1>It is yours</h1>
        <p>{quantity} of <a href={format_args!("/items/{}", id)}>{item.name}</a>" for $"{price} each.</p>
    };
    Ok(page.with_title("Bought"))
}

fn price(item: &Item) -> Result<u32, Error> {
    item.buy_now.ok_or_else(|| {
        Error::status(Status::CONFLICT, "this is not for sale at once; please bid for it")
    })
}
