//! Decides what the auction house keeps, and by what it is found.

use bine::FromText;
use bine::prelude::*;

/// Where somebody lives, and what they sell is.
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
    /// What others thought of them, added up.
    pub rating: i64,
    pub since: Time,
}

/// What is for sale, and what was until a moment ago. All prices are whole dollars.
#[allow(clippy::duplicated_attributes, reason = "two indexes may share columns")]
#[derive(Table)]
#[table(index(category, ends), index(region, category, ends))]
pub(crate) struct Item {
    pub id: Id<Item>,
    #[table(length = 1..=100)]
    pub name: Text,
    #[table(length = 1..=8000)]
    pub description: Text,
    pub category: Id<Category>,
    /// That of the seller, so that an index has it.
    pub region: Id<Region>,
    #[table(index)]
    pub seller: Id<User>,
    /// How many are left. With the last one the auction ends.
    pub quantity: u32,
    #[table(range = 1..=1_000_000)]
    pub first_price: u32,
    /// Below this it is not sold.
    pub reserve: Option<u32>,
    /// For this it is sold at once.
    pub buy_now: Option<u32>,
    /// Of how many bids `highest` is one; 0 without any.
    pub bids: u32,
    pub highest: u32,
    pub begins: Time,
    pub ends: Time,
}

/// What was sold, or was not, before this year's books were opened.
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

/// Something that was bought at once.
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

/// What one user says of another.
#[derive(Table)]
pub(crate) struct Comment {
    pub id: Id<Comment>,
    pub from: Id<User>,
    #[table(index)]
    pub to: Id<User>,
    /// The name of what was sold.
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

    /// What it costs so far.
    pub(crate) fn price(&self) -> u32 {
        self.highest.max(self.first_price)
    }

    /// The least that can be bid.
    pub(crate) fn least_bid(&self) -> u32 {
        if self.bids == 0 { self.first_price } else { self.highest + 1 }
    }
}

/// The id of a row in an address or a form.
pub(crate) struct Key<T>(pub Id<T>);

impl<T> FromText for Key<T> {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| "is no address of this house".to_owned())
    }
}

/// A number that may be left out.
pub(crate) struct Perhaps(pub Option<u32>);

impl FromText for Perhaps {
    fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            Ok(Self(None))
        } else {
            u32::from_text(text).map(|number| Self(Some(number)))
        }
    }
}
