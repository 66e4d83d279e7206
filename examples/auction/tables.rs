//! The tables of the auction and their indexes.

use bine::prelude::*;
use bine::{FromText, MessageText};
use serde::{Deserialize, Serialize};

/// The region of a user or an item.
#[derive(Table)]
pub(crate) struct Region {
    pub id: Id<Region>,
    #[table(unique)]
    pub slug: Text,
    pub name: Text,
}

#[derive(Table)]
pub(crate) struct Category {
    pub id: Id<Category>,
    #[table(unique)]
    pub slug: Text,
    pub name: Text,
}

#[derive(Table)]
pub(crate) struct User {
    pub id: Id<User>,
    #[table(unique, length = 3..=40)]
    pub name: Text,
    #[table(private)]
    pub salt: Vec<u8>,
    #[table(private)]
    pub password: Vec<u8>,
    #[table(length = 1..=40)]
    pub first: Text,
    #[table(length = 1..=40)]
    pub last: Text,
    pub region: Id<Region>,
    /// The sum of all ratings.
    pub rating: i64,
    pub since: Time,
}

/// An item for sale, or one whose auction ended recently. All prices are whole dollars.
#[allow(clippy::duplicated_attributes, reason = "two indexes may share columns")]
#[derive(Table, Serialize, Deserialize)]
#[table(index(category, ends), index(region, category, ends))]
pub(crate) struct Item {
    pub id: Id<Item>,
    #[table(length = 1..=100)]
    pub name: Text,
    #[table(length = 1..=8000)]
    pub description: Text,
    pub category: Id<Category>,
    /// The seller's region, so that it can be in an index.
    pub region: Id<Region>,
    #[table(index)]
    pub seller: Id<User>,
    /// The number of remaining pieces. The auction ends with the last one.
    pub quantity: u32,
    #[table(range = 1..=1_000_000)]
    pub first_price: u32,
    /// The reserve price: no sale below it.
    pub reserve: Option<u32>,
    /// The price for immediate purchase.
    pub buy_now: Option<u32>,
    /// The number of bids, of which `highest` is the last; 0 without bids.
    pub bids: u32,
    pub highest: u32,
    pub begins: Time,
    pub ends: Time,
}

/// An item whose auction ended before the data were generated.
#[derive(Table)]
pub(crate) struct OldItem {
    pub id: Id<OldItem>,
    pub name: Text,
    pub description: Text,
    pub category: Id<Category>,
    #[table(index)]
    pub seller: Id<User>,
    #[table(index)]
    pub buyer: Option<Id<User>>,
    pub price: u32,
    pub bids: u32,
    pub ended: Time,
}

#[derive(Table)]
pub(crate) struct Bid {
    pub id: Id<Bid>,
    #[table(index)]
    pub item: Id<Item>,
    #[table(index)]
    pub bidder: Id<User>,
    #[table(range = 1..=1_000_000_000)]
    pub amount: u32,
    pub made: Time,
}

/// An immediate purchase.
#[derive(Table)]
pub(crate) struct Purchase {
    pub id: Id<Purchase>,
    pub item: Id<Item>,
    #[table(index)]
    pub buyer: Id<User>,
    #[table(range = 1..=10_000)]
    pub quantity: u32,
    pub price: u32,
    pub made: Time,
}

/// A comment of one user on a second user.
#[derive(Table)]
pub(crate) struct Comment {
    pub id: Id<Comment>,
    pub from: Id<User>,
    #[table(index)]
    pub to: Id<User>,
    /// The name of the item sold.
    pub about: Text,
    #[table(range = -5..=5)]
    pub rating: i8,
    #[table(length = 1..=2000)]
    pub words: Text,
    pub made: Time,
}

impl Item {
    pub(crate) fn is_open(&self) -> bool {
        self.quantity > 0 && self.ends > Time::now()
    }

    /// The current price.
    pub(crate) fn price(&self) -> u32 {
        self.highest.max(self.first_price)
    }

    /// The minimum of the next bid.
    pub(crate) fn least_bid(&self) -> u32 {
        if self.bids == 0 { self.first_price } else { self.highest + 1 }
    }
}

/// The id of a row in an address or a form.
pub(crate) struct Key<T>(pub Id<T>);

impl<T> FromText for Key<T> {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        text.parse().map(Self).map_err(|_| "is no address of this house".into())
    }
}

/// An optional number.
pub(crate) struct Perhaps(pub Option<u32>);

impl FromText for Perhaps {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        if text.is_empty() {
            Ok(Self(None))
        } else {
            u32::from_text(text).map(|number| Self(Some(number)))
        }
    }
}
