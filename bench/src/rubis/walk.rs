//! Chooses the next request of a session, from the previous page and at random.

use super::super::random::Random;
use super::table::{Move, WHOLE, moves};
use super::{MOST_PAGES, Mix, PageSeen, State};

/// One visitor's session. The same seed and the same pages give the same requests.
pub(crate) struct Walk {
    /// Random choices on a page. Their number depends on the page, so they must not affect the
    /// moves.
    random: Random,
    /// Random moves: the length of a session in which all links exist depends on its seed only.
    steps: Random,
    mix: Mix,
    seed: u64,
    /// The number of existing users: `user0`, `user1` ..
    users: u64,
    person: Person,
    registered: u64,
    pages: usize,
    current: Request,
    /// The pages to go back to, the most recent last. Cleared on pages without a way back.
    history: Vec<Request>,
    memory: Memory,
}

/// A request for a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// `GET` or `POST`.
    pub(crate) method: &'static str,
    /// With its query.
    pub(crate) path: String,
    /// A form, `application/x-www-form-urlencoded`.
    pub(crate) body: Option<String>,
    pub(crate) state: State,
}

#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Page(Request),
    /// The session is complete.
    End,
}

/// The user in the forms.
struct Person {
    name: String,
    password: String,
}

/// The most recently seen object of each kind.
#[derive(Default)]
struct Memory {
    item: Option<String>,
    buyable: Option<String>,
    user: Option<String>,
    category: Option<String>,
    region: Option<String>,
    local_search: Option<String>,
    /// From the last page only.
    next: Option<String>,
    pass: Option<String>,
    least: Option<u64>,
}

impl Walk {
    /// A session that has not begun. Different seeds register different users.
    pub(crate) fn new(seed: u64, mix: Mix) -> Self {
        let home = Request { method: "GET", path: "/".to_owned(), body: None, state: State::Home };
        let walk = Self {
            random: Random(scattered(seed)),
            steps: Random(scattered(!seed)),
            mix,
            seed,
            users: 0,
            person: Person { name: String::new(), password: String::new() },
            registered: 0,
            pages: 0,
            current: home,
            history: Vec::new(),
            memory: Memory::default(),
        };
        walk.with_users(10_000)
    }

    /// Sets the number of users of the site, at least one; the default is that of the scale 0.01.
    pub(crate) fn with_users(mut self, users: u64) -> Self {
        self.users = users;
        let number = self.random.below(users);
        self.person =
            Person { name: format!("user{number}"), password: format!("password{number}") };
        self
    }

    /// Returns the next step after `seen`, which is ignored in the first call.
    ///
    /// A page without links, such as an error page, gets no special treatment: most visitors
    /// continue with earlier links, and go back if there are no earlier links.
    pub(crate) fn next(&mut self, seen: &PageSeen) -> Step {
        if self.pages == MOST_PAGES {
            return Step::End;
        }
        self.pages += 1;
        if self.pages == 1 {
            return Step::Page(self.current.clone());
        }
        self.memory.update(seen, &mut self.random);
        match self.draw() {
            Move::End => {
                self.pages = MOST_PAGES;
                return Step::End;
            }
            Move::Back => self.go_back(),
            Move::To(state) => match self.request(state) {
                Some(request) => self.go(request),
                None => self.go_back(),
            },
        }
        Step::Page(self.current.clone())
    }

    fn draw(&mut self) -> Move {
        let mut drawn = self.steps.below(WHOLE);
        for &(parts, step) in moves(self.mix, self.current.state) {
            if drawn < parts {
                return step;
            }
            drawn -= parts;
        }
        unreachable!("each line adds up to the whole, which a test checks")
    }

    fn go(&mut self, request: Request) {
        if !moves(self.mix, request.state).iter().any(|(_, step)| *step == Move::Back) {
            self.history.clear();
        }
        self.history.push(std::mem::replace(&mut self.current, request));
    }

    fn go_back(&mut self) {
        if let Some(before) = self.history.pop() {
            self.current = before;
        }
    }

    /// The request for a page. `None` if the visitor has not seen the object that it needs.
    fn request(&mut self, state: State) -> Option<Request> {
        let path = match state {
            State::Home => "/".to_owned(),
            State::RegisterForm | State::RegisterUser => "/register".to_owned(),
            State::Browse => "/browse".to_owned(),
            State::BrowseCategories => "/categories".to_owned(),
            State::SearchInCategory => {
                self.search("/categories/", self.memory.category.as_ref())?
            }
            State::BrowseRegions => "/regions".to_owned(),
            State::CategoriesInRegion => format!("/regions/{}", self.memory.region.as_ref()?),
            State::SearchInRegion => self.search("", self.memory.local_search.as_ref())?,
            State::ViewItem => format!("/items/{}", self.memory.item.as_ref()?),
            State::UserInfo => format!("/users/{}", self.memory.user.as_ref()?),
            State::BidHistory | State::StoreBid => {
                format!("/items/{}/bids", self.memory.item.as_ref()?)
            }
            State::BuyNowAuth => format!("/items/{}/buy", self.memory.buyable.as_ref()?),
            State::BuyNow => format!("{}/buy", self.item_of_last()?),
            State::StoreBuyNow => format!("{}/purchases", self.item_of_last()?),
            State::BidAuth | State::PutBid => format!("/items/{}/bid", self.memory.item.as_ref()?),
            State::CommentAuth => {
                let (user, item) = (self.memory.user.as_ref()?, self.memory.item.as_ref()?);
                format!("/users/{user}/comment?item={item}")
            }
            // The form posts to the address of the page that contains it.
            State::PutComment => self.current.path.clone(),
            State::StoreComment => self.current.path.replace("/comment?", "/comments?"),
            State::Sell | State::SelectCategory => "/sell".to_owned(),
            State::SellForm => "/sell/form".to_owned(),
            State::RegisterItem => "/items".to_owned(),
            State::AboutMeAuth | State::AboutMe => "/me".to_owned(),
        };
        let body = if state.sends_form() { Some(self.form(state)?) } else { None };
        let method = if body.is_some() { "POST" } else { "GET" };
        Some(Request { method, path, body, state })
    }

    /// The content of a form. `None` if the visitor is not logged in, or there is no choice.
    fn form(&mut self, state: State) -> Option<String> {
        let pass = self.memory.pass.as_ref();
        Some(match state {
            State::RegisterUser => self.registration()?,
            State::StoreBuyNow => format!("pass={}&quantity=1", pass?),
            State::StoreBid => {
                let (pass, least) = (pass?, self.memory.least?);
                format!("pass={pass}&amount={}", least + self.random.below(10))
            }
            State::StoreComment => {
                let rating = ["-5", "-3", "0", "3", "5"][self.below(5)];
                let words = self.words(1_900);
                format!("pass={}&rating={rating}&words={words}", self.memory.pass.as_ref()?)
            }
            State::SellForm => {
                format!("pass={}&category={}", pass?, self.memory.category.as_ref()?)
            }
            State::RegisterItem => self.offer()?,
            _ => format!("name={}&password={}", self.person.name, self.person.password),
        })
    }

    /// The next page of a search, or else its first page.
    fn search(&self, before: &str, target: Option<&String>) -> Option<String> {
        let is_search =
            matches!(self.current.state, State::SearchInCategory | State::SearchInRegion);
        let next = self.memory.next.clone().filter(|_| is_search);
        next.or_else(|| Some(format!("{before}{}", target?)))
    }

    /// The item of the last page, because the item to buy may differ from the last item seen.
    fn item_of_last(&self) -> Option<&str> {
        self.current.path.strip_suffix("/buy")
    }

    fn registration(&mut self) -> Option<String> {
        let region = self.memory.region.as_ref()?;
        self.registered += 1;
        let name = format!("visitor-{:x}-{}", self.seed, self.registered);
        let form =
            format!("name={name}&password=secret-{name}&first=Vera&last=Visitor&region={region}");
        self.person = Person { password: format!("secret-{name}"), name };
        Some(form)
    }

    fn offer(&mut self) -> Option<String> {
        let description = self.words(7_500);
        let price = 1 + self.random.below(5_000);
        let days = 1 + self.random.below(7);
        let reserve =
            if self.random.below(10) < 4 { (price + 10).to_string() } else { String::new() };
        // Items for immediate purchase have a stock, so that every buyer gets one.
        let (at_once, quantity) = match self.random.below(10) {
            0 => ((price * 2).to_string(), 10_000),
            1 | 2 => (String::new(), 2 + self.random.below(9)),
            _ => (String::new(), 1),
        };
        let (pass, category) = (self.memory.pass.as_ref()?, self.memory.category.as_ref()?);
        Some(format!(
            "pass={pass}&category={category}&name=A+thing+of+{}&description={description}&price={price}\
             &reserve={reserve}&buy_now={at_once}&quantity={quantity}&days={days}",
            self.person.name
        ))
    }

    /// At least one word, and not much more than `most` bytes.
    fn words(&mut self, most: u64) -> String {
        let length = self.random.below(most);
        let mut words = String::from("So");
        while (words.len() as u64) < length {
            words.push('+');
            words.push_str(
                ["good", "old", "rare", "blue", "very", "small", "fine", "it+is"][self.below(8)],
            );
        }
        words
    }

    fn below(&mut self, bound: usize) -> usize {
        // A number below a `usize` fits into one.
        self.random.below(bound as u64) as usize
    }
}

impl Memory {
    fn update(&mut self, seen: &PageSeen, random: &mut Random) {
        let mut choose = |kept: &mut Option<String>, shown: &[String]| {
            if !shown.is_empty() {
                let at = random.below(shown.len() as u64) as usize;
                *kept = Some(shown[at].clone());
            }
        };
        choose(&mut self.item, &seen.items);
        choose(&mut self.buyable, &seen.buyable);
        choose(&mut self.user, &seen.users);
        choose(&mut self.category, &seen.categories);
        choose(&mut self.region, &seen.regions);
        choose(&mut self.local_search, &seen.local_searches);
        self.next.clone_from(&seen.next);
        self.pass.clone_from(&seen.pass);
        self.least = seen.least;
    }
}

/// A seed for the sequence: never zero, and unrelated to that of the next number (splitmix64,
/// Steele 2014).
fn scattered(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ bits >> 31).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A page with every kind of link.
    fn everything() -> PageSeen {
        let one = || vec!["1".to_owned()];
        PageSeen {
            images: one(),
            items: one(),
            buyable: one(),
            users: one(),
            categories: one(),
            regions: one(),
            local_searches: one(),
            next: None,
            pass: Some("p".to_owned()),
            least: Some(7),
        }
    }

    struct Seen {
        /// Pages per session, sorted.
        lengths: Vec<usize>,
        states: BTreeMap<State, usize>,
        lasts: BTreeMap<State, usize>,
    }

    fn walk(mix: Mix, sessions: u64) -> Seen {
        let page = everything();
        let mut seen =
            Seen { lengths: Vec::new(), states: BTreeMap::new(), lasts: BTreeMap::new() };
        for seed in 0..sessions {
            let mut walk = Walk::new(seed, mix);
            let (mut length, mut last) = (0, State::Home);
            while let Step::Page(request) = walk.next(&page) {
                (length, last) = (length + 1, request.state);
                *seen.states.entry(last).or_default() += 1;
            }
            assert_eq!(walk.next(&page), Step::End);
            seen.lengths.push(length);
            *seen.lasts.entry(last).or_default() += 1;
        }
        seen.lengths.sort_unstable();
        seen
    }

    impl Seen {
        fn mean(&self) -> f64 {
            self.lengths.iter().sum::<usize>() as f64 / self.lengths.len() as f64
        }

        /// The length of the session at this percentile.
        fn percentile(&self, percent: usize) -> usize {
            self.lengths[self.lengths.len() * percent / 100]
        }

        /// The percentage of pages in these states.
        fn share(&self, matches: impl Fn(State) -> bool) -> f64 {
            let selected = self.states.iter().filter(|(state, _)| matches(**state));
            let count = selected.map(|(_, count)| count).sum::<usize>();
            100.0 * count as f64 / self.states.values().sum::<usize>() as f64
        }

        /// The percentage of sessions that end with this page.
        fn ends(&self, state: State) -> f64 {
            let count = self.lasts.get(&state).copied().unwrap_or_default();
            100.0 * count as f64 / self.lengths.len() as f64
        }
    }

    #[track_caller]
    fn near(value: f64, expected: f64, by: f64) {
        assert!((value - expected).abs() <= by, "{value:.1} is not {expected} +- {by}");
    }

    #[test]
    fn gives_bidders_the_lengths_and_ends_of_rubis() {
        let seen = walk(Mix::Bidding, 20_000);
        near(seen.mean(), 51.0, 1.5);
        near(seen.percentile(50) as f64, 36.0, 2.0);
        near(seen.percentile(95) as f64, 146.0, 6.0);
        for (state, percent) in [
            (State::StoreBid, 54.0),
            (State::StoreBuyNow, 17.0),
            (State::RegisterUser, 12.0),
            (State::StoreComment, 7.0),
            (State::RegisterItem, 6.0),
            (State::AboutMe, 5.0),
        ] {
            near(seen.ends(state), percent, 2.0);
        }
    }

    #[test]
    fn gives_bidders_the_page_mix_of_rubis() {
        use State::{BidAuth, PutBid, SearchInCategory, SearchInRegion, StoreBid, ViewItem};
        let seen = walk(Mix::Bidding, 20_000);
        near(seen.share(State::writes), 9.0, 0.5);
        near(seen.share(|state| matches!(state, SearchInCategory | SearchInRegion)), 24.0, 1.0);
        near(seen.share(|state| state == ViewItem), 16.0, 1.0);
        near(seen.share(|state| matches!(state, BidAuth | PutBid | StoreBid)), 18.0, 1.0);
        assert_eq!(seen.states.len(), State::ALL.len(), "every page is requested");
    }

    #[test]
    fn limits_browsing_sessions_that_never_write() {
        let seen = walk(Mix::Browsing, 5_000);
        near(seen.mean(), 452.0, 15.0);
        assert_eq!(seen.lengths.last(), Some(&MOST_PAGES));
        let capped = seen.lengths.iter().filter(|&&length| length == MOST_PAGES).count();
        near(100.0 * capped as f64 / 5_000.0, 15.0, 2.0);
        near(seen.share(State::writes), 0.0, 0.0);
    }

    #[test]
    fn repeats_the_session_of_a_seed() {
        let requests = |seed| {
            let (mut walk, page) = (Walk::new(seed, Mix::Bidding).with_users(40), everything());
            std::array::from_fn::<_, 30, _>(|_| walk.next(&page))
        };
        assert_eq!(requests(3), requests(3));
        assert_ne!(requests(3), requests(4));
    }

    #[test]
    fn goes_back_or_uses_the_menu_without_links() {
        let mut walk = Walk::new(1, Mix::Browsing);
        let mut asked = 0;
        while let Step::Page(request) = walk.next(&PageSeen::default()) {
            asked += 1;
            assert!(
                request.body.is_none() && request.path.matches('/').count() == 1,
                "{request:?}"
            );
        }
        assert!(asked > 1);
    }

    #[test]
    fn bids_at_least_the_minimum_after_login_only() {
        let mut walk = Walk::new(1, Mix::Bidding);
        walk.memory.update(&everything(), &mut Random(1));
        let bid = walk.request(State::StoreBid).unwrap();
        assert_eq!((bid.method, bid.path.as_str()), ("POST", "/items/1/bids"));
        let amount =
            bid.body.unwrap().strip_prefix("pass=p&amount=").unwrap().parse::<u64>().unwrap();
        assert!((7..17).contains(&amount));
        walk.memory.pass = None;
        assert_eq!(walk.request(State::StoreBid), None);
    }

    #[test]
    fn continues_a_search_on_its_next_page() {
        let mut walk = Walk::new(1, Mix::Bidding);
        let page = PageSeen { next: Some("/categories/1?page=2".to_owned()), ..everything() };
        walk.memory.update(&page, &mut Random(1));
        assert_eq!(walk.request(State::SearchInCategory).unwrap().path, "/categories/1");
        walk.current.state = State::SearchInCategory;
        assert_eq!(walk.request(State::SearchInCategory).unwrap().path, "/categories/1?page=2");
    }
}
