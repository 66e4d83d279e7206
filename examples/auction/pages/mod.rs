//! The layout and style of all pages, and shared parts.

use bine::prelude::*;

use crate::tables::Item;

mod account;
mod bid;
mod browse;
mod buy;
mod comment;
mod item;
mod sell;

/// Registers all pages.
pub(crate) fn all(app: App) -> App {
    app.page(browse::home)
        .page(browse::browse)
        .page(browse::categories)
        .page(browse::search_in_category)
        .page(browse::regions)
        .page(browse::categories_in_region)
        .page(browse::search_in_region)
        .page(account::register_form)
        .page(account::register_user)
        .page(account::user_info)
        .page(account::about_me_form)
        .page(account::about_me)
        .page(item::view_item)
        .page(item::view_old_item)
        .page(item::bid_history)
        .page(buy::buy_now_form)
        .page(buy::buy_now)
        .page(buy::store_buy_now)
        .page(bid::bid_form)
        .page(bid::put_bid)
        .page(bid::store_bid)
        .page(comment::comment_form)
        .page(comment::put_comment)
        .page(comment::store_comment)
        .page(sell::sell)
        .page(sell::select_category)
        .page(sell::sell_form)
        .page(sell::register_item)
}

pub(crate) fn layout(content: PageContent<'_>) -> impl Page {
    html! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8">
                <meta name="viewport" content="width=device-width, initial-scale=1">
                <title>{content.title()}</title>
            </head>
            <body>
                <header>
                    <a href="/"><img src="/logo.svg" alt="The Hopyard" width="220" height="48"></a>
                    <nav>
                        <a href="/browse">Browse</a> <a href="/sell">Sell</a>" "
                        <a href="/me">About me</a> <a href="/register">Register</a>
                    </nav>
                </header>
                <main>{content}</main>
            </body>
        </html>
    }
}

/// The classes of pages in TSX: of a line of links, and of a price.
#[allow(dead_code, reason = "only the program with pages in TSX needs them")]
pub(crate) const CLASSES: [Class; 2] = [style::actions, style::price];

/// The login form, which posts to its own address.
fn login(to: String, button: &'static str) -> impl Html<Flow> {
    html! {
        <form method="post" action={to}>
            <label>Name <input name="name" autocomplete="username" required autofocus></label>
            <label>
                Password <input type="password" name="password" autocomplete="current-password" required>
            </label>
            <button>{button}</button>
        </form>
    }
}

/// A list of up to twenty items, each with a button to bid.
fn listing(items: Vec<Item>) -> impl Html<Flow> {
    html! {
        <ul class={style::listing}>
            {for item in items {
                <li>
                    <a href={format_args!("/items/{}", item.id)}>{item.name}</a>" "
                    <span class={style::price}>"$"{item.price()}</span>" "
                    <span class={style::note}>{bids(item.bids)}", "{left(item.ends)}</span>
                    {if let Some(price) = item.buy_now {
                        <a class={style::note} href={format_args!("/items/{}/buy", item.id)}>"Buy now for $"{price}</a>
                    }}
                    <a class={style::act} href={format_args!("/items/{}/bid", item.id)}>
                        <img src="/bid.svg" alt="Bid" width="64" height="24">
                    </a>
                </li>
            }}
        </ul>
    }
}

fn bids(count: u32) -> String {
    format!("{count} bid{}", if count == 1 { "" } else { "s" })
}

/// The remaining time.
fn left(ends: Time) -> String {
    let minutes = (ends.0 - Time::now().0) / 60_000_000;
    match (minutes / (24 * 60), minutes / 60 % 24, minutes % 60) {
        _ if minutes < 0 => "ended".to_owned(),
        (0, 0, minutes) => format!("{minutes} min left"),
        (0, hours, _) => format!("{hours} h left"),
        (days, hours, _) => format!("{days} d {hours} h left"),
    }
}

/// The day of a time.
fn day(moment: Time) -> String {
    let mut text = moment.to_string();
    text.truncate("2026-11-21".len());
    text
}

css! {
    body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; color: #22281f; background: #fbfaf5; }
    header {
        display: flex; flex-wrap: wrap; gap: 0.5rem 2rem; align-items: center; padding: 0.6rem 1.5rem;
        border-bottom: 2px solid #2e6b3f; background: white;
    }
    nav { display: flex; gap: 1.2rem; }
    nav a { font-weight: 600; text-decoration: none; }
    main { max-width: 52rem; margin: 1.5rem auto 4rem; padding: 0 1.5rem; }
    a { color: #1f5c30; }
    h1 { margin: 0 0 0.8rem; font: 600 1.7rem/1.2 Georgia, serif; }
    h2 { margin: 2rem 0 0.5rem; font-size: 1.1rem; }
    form { display: grid; gap: 0.8rem; max-width: 26rem; }
    label { display: grid; gap: 0.2rem; font-weight: 600; }
    input, select, textarea, button { padding: 0.45rem 0.6rem; font: inherit; border: 1px solid #b9bfae; border-radius: 6px; }
    button { border-color: #2e6b3f; color: white; background: #2e6b3f; font-weight: 600; cursor: pointer; }
    button:hover { background: #1f5c30; }
    dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1.5rem; }
    dt { color: #5b6453; }
    dd { margin: 0; }
    blockquote { margin: 0.3rem 0 0; overflow-wrap: anywhere; }
}

css! {
    mod style;

    .listing {
        padding: 0; list-style: none;

        & li { display: flex; gap: 1rem; align-items: center; padding: 0.5rem 0; border-bottom: 1px solid #e2e2d5; }
        & li > a:first-child { flex: 1; }
        & .note { min-width: 10.5rem; text-align: end; }
    }
    .price { font-weight: 600; font-variant-numeric: tabular-nums; }
    .note { color: #5b6453; font-size: 0.9rem; }
    .act img { display: block; }
    .choices { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: 0.4rem 1.5rem; padding: 0; list-style: none; max-width: none; }
    .actions { display: flex; flex-wrap: wrap; gap: 0.5rem 1.5rem; align-items: center; }
    .said { margin: 0.8rem 0; padding: 0.6rem 1rem; border-left: 3px solid #c9d96a; background: white; }
    .warning { padding: 0.6rem 1rem; border-left: 3px solid #b5542c; background: white; }
    .tools { display: flex; justify-content: space-between; margin-top: 1rem; }
}
