//! Pages for selling.

use bine::prelude::*;

use super::{login, style};
use crate::auction::{Auction, found};
use crate::database::Snapshot;
use crate::tables::{Category, Item, Perhaps};

const DAY: i64 = 24 * 3600 * 1_000_000;

#[page("/sell")]
pub(crate) fn sell() -> impl Respond {
    html!(<h1>Who sells?</h1> {login("/sell".to_owned(), "Go on")}).with_title("Log in to sell")
}

#[page(POST "/sell")]
pub(crate) fn select_category(
    auction: Auction,
    name: Form<Text>,
    password: Form<Text>,
) -> Result<impl Respond, Error> {
    let now = auction.read();
    let (_, pass) = auction.log_in(&now, &name, &password)?;
    let categories: Vec<_> = now.all::<Category>().collect();
    let page = html! {
        <h1>What is it?</h1>
        <form method="post" action="/sell/form" class={style::choices}>
            <input type="hidden" name="pass" value={pass}>
            {for category in categories {
                <button name="category" value={category.slug}>{category.name}</button>
            }}
        </form>
    };
    Ok(page.with_title("Choose a category"))
}

#[page(POST "/sell/form")]
pub(crate) fn sell_form(
    auction: Auction,
    pass: Form<Text>,
    category: Form<Text>,
) -> Result<impl Respond, Error> {
    let seller = auction.bearer(&pass)?;
    let category = category_of(&auction.read(), &category)?;
    let pass = auction.pass(seller);
    let page = html! {
        <h1>Sell in {category.name}</h1>
        <form method="post" action="/items">
            <input type="hidden" name="pass" value={pass}>
            <input type="hidden" name="category" value={category.slug}>
            <label>What it is <input name="name" maxlength="100" required autofocus></label>
            <label>Description <textarea name="description" rows="6" maxlength="8000" required></textarea></label>
            <label>
                First price, in dollars <input type="number" name="price" min="1" max="1000000" required>
            </label>
            <label>Not to be sold below <input type="number" name="reserve" min="1" max="1000000"></label>
            <label>To be sold at once for <input type="number" name="buy_now" min="1" max="1000000"></label>
            <label>How many <input type="number" name="quantity" min="1" max="10000" value="1" required></label>
            <label>For how many days <input type="number" name="days" min="1" max="7" value="7" required></label>
            <button>Offer it</button>
        </form>
    };
    Ok(page.with_title("Sell"))
}

#[page(POST "/items")]
#[expect(clippy::too_many_arguments, reason = "each is a field of the form")]
pub(crate) fn register_item(
    auction: Auction,
    pass: Form<Text>,
    category: Form<Text>,
    name: Form<Text>,
    description: Form<Text>,
    price: Form<u32>,
    reserve: Form<Perhaps>,
    buy_now: Form<Perhaps>,
    quantity: Form<u32>,
    days: Form<u8>,
) -> Result<impl Respond, Error> {
    let seller = auction.bearer(&pass)?;
    if !(1..=7).contains(&days.0) {
        return Err(Error::invalid_argument("days", "must be from 1 to 7"));
    }
    if !(1..=10_000).contains(&quantity.0) {
        return Err(Error::invalid_argument("quantity", "must be from 1 to 10000"));
    }
    let (item, title) = auction.change(|change| {
        let begins = Time::now();
        let category = category_of(change, &category)?.id;
        let item = Item {
            id: Id::unassigned(),
            name: name.0.clone(),
            description: description.0.clone(),
            category,
            region: found(change.get(seller), "user")?.region,
            seller,
            quantity: quantity.0,
            first_price: price.0,
            reserve: reserve.0.0,
            buy_now: buy_now.0.0,
            bids: 0,
            highest: 0,
            begins,
            ends: Time(begins.0 + i64::from(days.0) * DAY),
        };
        Ok((change.insert(item)?, name.0.clone()))
    })?;
    let page = html! {
        <h1>It is for sale</h1>
        <p><a href={format_args!("/items/{item}")}>{title}</a>" can be bid for."</p>
    };
    Ok(page.with_title("For sale"))
}

fn category_of(now: &Snapshot, slug: &str) -> Result<Category, Error> {
    now.one(Category::BY_SLUG, slug)
        .ok_or_else(|| Error::invalid_argument("category", "is none of ours"))
}
