//! Generates the initial data from a seed: the amounts of `RUBiS`, times the scale.

use bine::prelude::*;

use crate::access;
use crate::database::{DatabaseError, Store, Transaction};
use crate::tables::{Bid, Category, Comment, Item, OldItem, Region, User};
use words::{CATEGORIES, FIRST, KINDS, LAST, PRAISE, REGIONS, SENTENCES};

// The path is given, because a test of another crate has this module, too.
#[path = "seed/words.rs"]
mod words;

const USERS: f64 = 1_000_000.0;
const OLD_ITEMS: f64 = 500_000.0;
/// The number of rows per transaction.
const AT_ONCE: usize = 500;
const SECOND: i64 = 1_000_000;
const DAY: i64 = 24 * 3600 * SECOND;
/// From this number of users on, the start is slow enough to report its progress.
const MANY: usize = 50_000;

/// Fills empty tables; existing data stay unchanged.
///
/// # Errors
///
/// The tables reject a row; or they have less data than the scale requires, because they were
/// created with a different scale or incompletely.
pub(crate) fn fill(store: &Store, scale: f64, seed: u64) -> Result<(), Error> {
    let now = store.read();
    if now.count::<Region>() > 0 {
        // Regions are never added later, and old items are created last.
        let (has, wanted) = (now.count::<OldItem>(), count(OLD_ITEMS, scale));
        if has < wanted {
            let reason = format!(
                "the folder of --data has {has} old items, but AUCTION_SCALE={scale} needs {wanted}: remove it, \
                 or set the scale that it was created with"
            );
            return Err(Error::status(Status::CONFLICT, reason));
        }
        return Ok(());
    }
    let mut seeding = Seeding::begin(store, scale, seed)?;
    seeding.users()?;
    seeding.items()?;
    seeding.old_items()?;
    Ok(())
}

struct Seeding<'s> {
    store: &'s Store,
    scale: f64,
    chance: Chance,
    now: Time,
    regions: Vec<Id<Region>>,
    categories: Vec<Id<Category>>,
    /// With their regions.
    users: Vec<(Id<User>, Id<Region>)>,
}

impl<'s> Seeding<'s> {
    fn begin(store: &'s Store, scale: f64, seed: u64) -> Result<Self, Error> {
        let (regions, categories) = store
            .change(|change| {
                let regions = REGIONS.iter().map(|&name| {
                    change.insert(Region {
                        id: Id::unassigned(),
                        slug: slug(name),
                        name: name.into(),
                    })
                });
                let regions = regions.collect::<Result<Vec<_>, _>>()?;
                let categories = CATEGORIES.iter().map(|&(name, _)| {
                    change.insert(Category {
                        id: Id::unassigned(),
                        slug: slug(name),
                        name: name.into(),
                    })
                });
                Ok::<_, DatabaseError>((regions, categories.collect::<Result<Vec<_>, _>>()?))
            })
            .wait()?;
        let chance = Chance::new(seed);
        Ok(Self { store, scale, chance, now: Time::now(), regions, categories, users: Vec::new() })
    }

    fn users(&mut self) -> Result<(), Error> {
        let wanted = self.count(USERS);
        while self.users.len() < wanted {
            let begin = self.users.len();
            let rows = (begin..wanted.min(begin + AT_ONCE)).map(|number| self.user(number));
            let rows: Vec<User> = rows.collect();
            let regions: Vec<_> = rows.iter().map(|user| user.region).collect();
            let ids = insert(self.store, rows)?;
            self.users.extend(ids.into_iter().zip(regions));
            self.report_progress("users", self.users.len(), wanted);
        }
        Ok(())
    }

    fn user(&mut self, number: usize) -> User {
        let salt = self.chance.bits().to_le_bytes().to_vec();
        User {
            id: Id::unassigned(),
            name: format!("user{number}").into(),
            password: access::hashed(&format!("password{number}"), &salt),
            salt,
            first: (*self.chance.of(FIRST)).into(),
            last: (*self.chance.of(LAST)).into(),
            region: *self.chance.of(&self.regions),
            rating: 0,
            since: Time(self.now.0 - self.chance.between(1, 1000) * DAY),
        }
    }

    fn items(&mut self) -> Result<(), Error> {
        let all: f64 = CATEGORIES.iter().map(|&(_, count)| f64::from(count)).sum();
        for (category, &(_, count)) in CATEGORIES.iter().enumerate() {
            let mut left = self.count(f64::from(count));
            while left > 0 {
                let count = left.min(AT_ONCE);
                let rows: Vec<Item> = (0..count).map(|_| self.item(category)).collect();
                self.insert_with_bids(rows)?;
                left -= count;
            }
        }
        self.report_progress("items", self.count(all), self.count(all));
        Ok(())
    }

    /// One item in five has several pieces, two in five have a reserve price, and one in ten has a
    /// price for immediate purchase. The latter have a large stock, so that hours of purchases do
    /// not use it up.
    fn item(&mut self, category: usize) -> Item {
        let (seller, region) = *self.chance.of(&self.users);
        let first_price = self.price();
        let is_stock = self.chance.is_one_of(10);
        let is_several = self.chance.is_one_of(5);
        let has_reserve = self.chance.below(5) < 2;
        Item {
            id: Id::unassigned(),
            name: self.name(category),
            description: self.description(),
            category: self.categories[category],
            region,
            seller,
            quantity: match (is_stock, is_several) {
                (true, _) => 100_000,
                (false, true) => self.chance.whole(2, 10),
                (false, false) => 1,
            },
            first_price,
            reserve: has_reserve.then(|| first_price + self.chance.whole(1, 1000)),
            buy_now: is_stock.then(|| first_price + self.chance.whole(100, 1000)),
            bids: self.chance.whole(0, 19),
            highest: 0,
            begins: Time(self.now.0 - self.chance.between(0, DAY / SECOND) * SECOND),
            ends: Time(self.now.0 + self.chance.between(DAY / SECOND, 7 * DAY / SECOND) * SECOND),
        }
    }

    fn insert_with_bids(&mut self, mut items: Vec<Item>) -> Result<(), Error> {
        let mut bids = Vec::new();
        for (place, item) in items.iter_mut().enumerate() {
            item.highest = item.first_price - 1;
            for number in 0..i64::from(item.bids) {
                item.highest += self.chance.whole(1, 10);
                let made = Time(item.begins.0 + (self.now.0 - item.begins.0) / 20 * number);
                let bidder = self.chance.of(&self.users).0;
                let bid = Bid {
                    id: Id::unassigned(),
                    item: Id::unassigned(),
                    bidder,
                    amount: item.highest,
                    made,
                };
                bids.push((place, bid));
            }
            if item.bids == 0 {
                item.highest = 0;
            }
        }
        let ids = insert(self.store, items)?;
        let bids = bids.into_iter().map(|(place, bid)| Bid { item: ids[place], ..bid });
        insert(self.store, bids.collect())?;
        Ok(())
    }

    /// Items sold earlier, each with a comment of the buyer on the seller.
    fn old_items(&mut self) -> Result<(), Error> {
        let wanted = self.count(OLD_ITEMS);
        let mut made = 0;
        while made < wanted {
            let count = AT_ONCE.min(wanted - made);
            let (items, comments) = (0..count).map(|_| self.old_item()).unzip();
            insert::<OldItem>(self.store, items)?;
            self.comment(comments)?;
            made += count;
            self.report_progress("old items", made, wanted);
        }
        Ok(())
    }

    fn comment(&self, comments: Vec<Comment>) -> Result<(), Error> {
        let insert = |change: &mut Transaction| {
            for comment in comments {
                let rating = i64::from(comment.rating);
                change.update(comment.to, |user| user.rating += rating)?;
                change.insert(comment)?;
            }
            Ok::<_, DatabaseError>(())
        };
        Ok(self.store.change_once(insert).wait()?)
    }

    fn old_item(&mut self) -> (OldItem, Comment) {
        let category = self.chance.below(CATEGORIES.len());
        let (seller, buyer) = (self.chance.of(&self.users).0, self.chance.of(&self.users).0);
        let bids = self.chance.whole(0, 19);
        let item = OldItem {
            id: Id::unassigned(),
            name: self.name(category),
            description: self.description(),
            category: self.categories[category],
            seller,
            buyer: (bids > 0).then_some(buyer),
            price: self.price() + bids * 5,
            bids,
            ended: Time(self.now.0 - self.chance.between(1, 300) * DAY),
        };
        let (rating, praise) = *self.chance.of(PRAISE);
        let length = self.chance.below(2000);
        let comment = Comment {
            id: Id::unassigned(),
            from: buyer,
            to: seller,
            about: item.name.clone(),
            rating,
            words: self.text(praise, length),
            made: Time(item.ended.0 + DAY),
        };
        (item, comment)
    }

    fn price(&mut self) -> u32 {
        self.chance.whole(1, 5000)
    }

    fn name(&mut self, category: usize) -> Text {
        let (kinds, things) = KINDS[category];
        let (kind, thing) = (self.chance.of(kinds), self.chance.of(things));
        format!("{kind} {thing}, lot {}", self.chance.below(10_000)).into()
    }

    fn description(&mut self) -> Text {
        let length = self.chance.below(7_500);
        self.text("For sale from a house that is cleared.", length)
    }

    /// At least one sentence, and about `length` bytes in total.
    fn text(&mut self, first: &str, length: usize) -> Text {
        let mut text = first.to_owned();
        loop {
            let next = self.chance.of(SENTENCES);
            if text.len() + next.len() >= length {
                return text.into();
            }
            text.push(' ');
            text.push_str(next);
        }
    }

    fn count(&self, of_all: f64) -> usize {
        count(of_all, self.scale)
    }

    fn report_progress(&self, what: &str, made: usize, wanted: usize) {
        if self.users.len() >= MANY && (made == wanted || made.is_multiple_of(50_000)) {
            eprintln!("auction: {made} of {wanted} {what}");
        }
    }
}

/// The number at this scale, at least one.
#[expect(clippy::cast_sign_loss, reason = "neither is negative")]
fn count(of_all: f64, scale: f64) -> usize {
    (of_all * scale).ceil().max(1.0) as usize
}

fn insert<T: Table>(store: &Store, rows: Vec<T>) -> Result<Vec<Id<T>>, Error> {
    let insert = |change: &mut Transaction| {
        rows.into_iter().map(|row| change.insert(row)).collect::<Result<_, DatabaseError>>()
    };
    Ok(store.change_once(insert).wait()?)
}

/// The name as it is written in addresses.
fn slug(name: &str) -> Text {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase);
    words.collect::<Vec<_>>().join("-").into()
}

/// A random number generator, the same for the same seed (splitmix64, Steele 2014).
struct Chance(u64);

impl Chance {
    const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    fn is_one_of(&mut self, several: usize) -> bool {
        self.below(several) == 0
    }

    fn between(&mut self, least: i64, most: i64) -> i64 {
        least + (self.bits() % (most - least + 1).unsigned_abs()).cast_signed()
    }

    fn whole(&mut self, least: u32, most: u32) -> u32 {
        least + (self.bits() % u64::from(most - least + 1)) as u32
    }

    fn of<'a, T>(&mut self, several: &'a [T]) -> &'a T {
        &several[self.below(several.len())]
    }
}
