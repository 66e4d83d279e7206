//! The items of `HttpArena`'s JSON cases, for all programs that have them.

use serde::Serialize;

/// An item of the shop.
pub(crate) struct Item {
    id: u32,
    name: String,
    category: &'static str,
    price: u32,
    quantity: u32,
    active: bool,
    tags: Vec<&'static str>,
    rating: Rating,
}

#[derive(Clone, Copy, Serialize)]
pub(crate) struct Rating {
    score: u32,
    count: u32,
}

/// An item with its price for a quantity and a multiplier.
#[derive(Serialize)]
pub(crate) struct PricedItem {
    id: u32,
    name: &'static str,
    category: &'static str,
    price: u32,
    quantity: u32,
    active: bool,
    tags: &'static [&'static str],
    rating: Rating,
    total: u64,
}

/// The response of a JSON case.
#[derive(Serialize)]
pub(crate) struct ItemList {
    items: Vec<PricedItem>,
    count: usize,
}

/// Items of the shop.
const ITEMS: u32 = 50;
const CATEGORIES: [&str; 5] = ["electronics", "garden", "kitchen", "office", "sports"];
const TAGS: [&str; 6] = ["fast", "new", "sale", "light", "solid", "local"];
const NAMES: [&str; 7] = ["Alpha", "Beta", "Gamma", "Delta", "Sigma", "Omega", "Kappa"];
const KINDS: [&str; 6] = ["Widget", "Lamp", "Chair", "Radio", "Bottle", "Rack"];

/// All items of the shop.
pub(crate) fn items() -> Vec<Item> {
    let choose = |from: &'static [&'static str], number: u32| from[number as usize % from.len()];
    let item = |id: u32| Item {
        id,
        name: format!("{} {} {id}", choose(&NAMES, id), choose(&KINDS, id / 2)),
        category: choose(&CATEGORIES, id / 3),
        price: 5 + id * 7919 % 995,
        quantity: 1 + id * 104_729 % 60,
        active: !id.is_multiple_of(4),
        tags: (0..=id % 3).map(|number| choose(&TAGS, id + number)).collect(),
        rating: Rating { score: id * 31 % 51, count: id * 127 % 400 },
    };
    (1..=ITEMS).map(item).collect()
}

/// The first `count` items with their prices.
pub(crate) fn priced(items: &'static [Item], count: usize, multiplier: u32) -> ItemList {
    let priced = |item: &'static Item| PricedItem {
        id: item.id,
        name: &item.name,
        category: item.category,
        price: item.price,
        quantity: item.quantity,
        active: item.active,
        tags: &item.tags,
        rating: item.rating,
        total: u64::from(item.price) * u64::from(item.quantity) * u64::from(multiplier),
    };
    let items: Vec<PricedItem> = items.iter().take(count).map(priced).collect();
    ItemList { count: items.len(), items }
}
