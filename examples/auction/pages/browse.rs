//! Pages for browsing by category and region.

use bine::prelude::*;

use super::{listing, style};
use crate::auction::{Auction, found};
use crate::database::{RowIter, Snapshot};
use crate::tables::{Category, Item, Region};

/// The number of items on a page of a search.
const ITEMS: usize = 20;
/// The limit of pages of a search.
const MOST_PAGES: usize = 500;

#[page("/")]
pub(crate) fn home() -> impl Respond {
    html! {
        <h1>Good things, sold to whoever gives most</h1>
        <p>Look around, bid for what you like, and sell what you have too much of.</p>
        <p class={style::actions}>
            <a href="/categories">All categories</a> <a href="/regions">What is near you</a>
            <a href="/sell">Sell something</a>
        </p>
    }
    .with_title("The Hopyard, an auction house")
}

#[page("/browse")]
pub(crate) fn browse() -> impl Respond {
    html! {
        <h1>Browse</h1>
        <ul>
            <li><a href="/categories">By category</a></li>
            <li><a href="/regions">By region</a></li>
        </ul>
    }
    .with_title("Browse")
}

#[page("/categories")]
pub(crate) fn categories(auction: Auction) -> impl Respond {
    let categories: Vec<_> = auction.read().all::<Category>().collect();
    html! {
        <h1>Categories</h1>
        <ul class={style::choices}>
            {for category in categories {
                <li><a href={format_args!("/categories/{}", category.slug)}>{category.name}</a></li>
            }}
        </ul>
    }
    .with_title("Categories")
}

#[page("/categories/{category}")]
pub(crate) fn search_in_category(
    auction: Auction,
    category: Path<Text>,
    page: Query<Option<usize>>,
) -> Result<impl Respond, Error> {
    let now = auction.read();
    let category = category_of(&now, &category)?;
    let page = Place::new(*page, format!("/categories/{}", category.slug));
    let open = (category.id, Time::now())..=(category.id, Time(i64::MAX));
    let found = now.range(Item::BY_CATEGORY_ENDS, open);
    let items = page.of(found);
    let title = category.name.to_string();
    Ok(html!(<h1>{category.name}</h1> {results(items, page)}).with_title(title))
}

#[page("/regions")]
pub(crate) fn regions(auction: Auction) -> impl Respond {
    let regions: Vec<_> = auction.read().all::<Region>().collect();
    html! {
        <h1>Regions</h1>
        <ul class={style::choices}>
            {for region in regions {
                <li><a href={format_args!("/regions/{}", region.slug)}>{region.name}</a></li>
            }}
        </ul>
    }
    .with_title("Regions")
}

#[page("/regions/{region}")]
pub(crate) fn categories_in_region(
    auction: Auction,
    region: Path<Text>,
) -> Result<impl Respond, Error> {
    let now = auction.read();
    let region = region_of(&now, &region)?;
    let categories: Vec<_> = now.all::<Category>().collect();
    let title = format!("Categories in {}", region.name);
    let page = html! {
        <h1>Categories in {region.name}</h1>
        <ul class={style::choices}>
            {for category in categories {
                <li><a href={format_args!("/regions/{}/{}", region.slug, category.slug)}>{category.name}</a></li>
            }}
        </ul>
    };
    Ok(page.with_title(title))
}

#[page("/regions/{region}/{category}")]
pub(crate) fn search_in_region(
    auction: Auction,
    region: Path<Text>,
    category: Path<Text>,
    page: Query<Option<usize>>,
) -> Result<impl Respond, Error> {
    let now = auction.read();
    let (region, category) = (region_of(&now, &region)?, category_of(&now, &category)?);
    let page = Place::new(*page, format!("/regions/{}/{}", region.slug, category.slug));
    let begin = (region.id, category.id, Time::now());
    let open = begin..=(region.id, category.id, Time(i64::MAX));
    let found = now.range(Item::BY_REGION_CATEGORY_ENDS, open);
    let items = page.of(found);
    let title = format!("{} in {}", category.name, region.name);
    Ok(html!(<h1>{category.name} in {region.name}</h1> {results(items, page)}).with_title(title))
}

fn category_of(now: &Snapshot, slug: &str) -> Result<Category, Error> {
    found(now.one(Category::BY_SLUG, slug), "category")
}

pub(crate) fn region_of(now: &Snapshot, slug: &str) -> Result<Region, Error> {
    found(now.one(Region::BY_SLUG, slug), "region")
}

/// One page of a search.
struct Place {
    /// Counted from 1.
    number: usize,
    path: String,
}

impl Place {
    fn new(number: Option<usize>, path: String) -> Self {
        Self { number: number.unwrap_or(1).clamp(1, MOST_PAGES), path }
    }

    /// The items of this page, plus one if there is a next page.
    fn of(&self, found: RowIter<'_, Item>) -> Vec<Item> {
        found.skip((self.number - 1) * ITEMS).take(ITEMS + 1).collect()
    }
}

/// A page of a search. `items` has one more if there is a next page.
fn results(mut items: Vec<Item>, page: Place) -> impl Html<Flow> {
    let has_more = items.len() > ITEMS && page.number < MOST_PAGES;
    items.truncate(ITEMS);
    let is_empty = items.is_empty();
    html! {
        {if is_empty { <p>Nothing is for sale here at the moment.</p> } else { {listing(items)} }}
        <p class={style::tools}>
            {if page.number > 1 {
                <a rel="prev" href={format_args!("{}?page={}", page.path, page.number - 1)}>Sooner to end</a>
            }}
            {if has_more {
                <a rel="next" href={format_args!("{}?page={}", page.path, page.number + 1)}>Later to end</a>
            }}
        </p>
    }
}
