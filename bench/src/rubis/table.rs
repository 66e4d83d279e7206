//! Decides where visitors go from each page, and how likely: in parts of ten thousand.

use super::{Mix, State};

/// What a visitor does with a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    To(State),
    /// To the page before, as by the browser's button.
    Back,
    /// Away: the session is complete.
    End,
}

use State::{
    AboutMe, AboutMeAuth, BidAuth, BidHistory, Browse, BrowseCategories, BrowseRegions, BuyNow,
    BuyNowAuth, CategoriesInRegion, CommentAuth, Home, PutBid, PutComment, RegisterForm,
    RegisterItem, RegisterUser, SearchInCategory, SearchInRegion, SelectCategory, Sell, SellForm,
    StoreBid, StoreBuyNow, StoreComment, UserInfo, ViewItem,
};
use Way::{Back, End, To};

/// All ways add up to this.
pub(super) const WHOLE: u64 = 10_000;

/// Where one goes from a page. What is left of 10 000 stays: the same page is asked for again.
pub(super) const fn ways(mix: Mix, from: State) -> &'static [(u64, Way)] {
    match mix {
        Mix::Bidding => bidding(from),
        Mix::Browsing => browsing(from),
    }
}

/// After something was written.
const DONE: &[(u64, Way)] = &[
    (5800, To(Browse)),
    (2000, End),
    (1500, To(AboutMeAuth)),
    (500, To(Sell)),
    (100, To(Home)),
    (100, To(RegisterForm)),
];

/// The click that leads on, or rarely one into the menu that every page has.
macro_rules! on {
    ($next:expr) => {
        &[
            (1, To(Home)),
            (100, To(RegisterForm)),
            (58, To(Browse)),
            (9821, To($next)),
            (15, To(AboutMeAuth)),
            (5, To(Sell)),
        ]
    };
}

/// What bidders do. (Long because it is a table.)
const fn bidding(from: State) -> &'static [(u64, Way)] {
    match from {
        // Three in a hundred ask for the first page again.
        Home => &[
            (7000, To(Browse)),
            (1500, To(AboutMeAuth)),
            (700, To(RegisterForm)),
            (500, To(Sell)),
            (300, To(Home)),
        ],
        RegisterForm => &[
            (1, To(Home)),
            (58, To(Browse)),
            (9921, To(RegisterUser)),
            (15, To(AboutMeAuth)),
            (5, To(Sell)),
        ],
        RegisterUser | StoreBuyNow | StoreBid | StoreComment | RegisterItem => DONE,
        Browse => &[
            (1, To(Home)),
            (79, To(RegisterForm)),
            (7000, To(BrowseCategories)),
            (2900, To(BrowseRegions)),
            (15, To(AboutMeAuth)),
            (5, To(Sell)),
        ],
        BrowseCategories => on!(SearchInCategory),
        BrowseRegions => on!(CategoriesInRegion),
        CategoriesInRegion => on!(SearchInRegion),
        SearchInCategory => &[
            (1, To(Home)),
            (100, To(RegisterForm)),
            (58, To(Browse)),
            (4000, To(SearchInCategory)),
            (5000, To(ViewItem)),
            (841, To(BidAuth)),
        ],
        SearchInRegion => &[
            (1, To(Home)),
            (100, To(RegisterForm)),
            (58, To(Browse)),
            (4000, To(SearchInRegion)),
            (5000, To(ViewItem)),
            (841, To(BidAuth)),
        ],
        ViewItem => &[
            (1, To(Home)),
            (100, To(RegisterForm)),
            (58, To(Browse)),
            (1000, To(UserInfo)),
            (500, To(BidHistory)),
            (1000, To(BuyNowAuth)),
            (2200, To(BidAuth)),
            (200, To(CommentAuth)),
            (15, To(AboutMeAuth)),
            (5, To(Sell)),
            (4921, Back),
        ],
        UserInfo | BidHistory => &[
            (1, To(Home)),
            (100, To(RegisterForm)),
            (58, To(Browse)),
            (1900, To(UserInfo)),
            (15, To(AboutMeAuth)),
            (5, To(Sell)),
            (7921, Back),
        ],
        BuyNowAuth => on!(BuyNow),
        BuyNow => on!(StoreBuyNow),
        BidAuth => on!(PutBid),
        PutBid => &[
            (1, To(Home)),
            (100, To(RegisterForm)),
            (58, To(Browse)),
            (500, To(UserInfo)),
            (1500, To(BidHistory)),
            (7321, To(StoreBid)),
            (500, To(CommentAuth)),
            (15, To(AboutMeAuth)),
            (5, To(Sell)),
        ],
        CommentAuth => on!(PutComment),
        PutComment => on!(StoreComment),
        Sell => on!(SelectCategory),
        SelectCategory => on!(SellForm),
        SellForm => on!(RegisterItem),
        AboutMeAuth => on!(AboutMe),
        // Some leave, some log in again: of five in a hundred sessions this is the end.
        AboutMe => &[
            (1, To(Home)),
            (100, To(RegisterForm)),
            (1160, To(Browse)),
            (6500, To(ViewItem)),
            (500, To(UserInfo)),
            (1000, To(BidAuth)),
            (5, To(Sell)),
            (300, End),
            (434, To(AboutMe)),
        ],
    }
}

/// What those do who only look; how seldom they end makes the mean of their sessions what it is.
const fn browsing(from: State) -> &'static [(u64, Way)] {
    match from {
        Browse => &[(7000, To(BrowseCategories)), (2900, To(BrowseRegions)), (100, End)],
        BrowseCategories => &[(9900, To(SearchInCategory)), (100, End)],
        BrowseRegions => &[(9900, To(CategoriesInRegion)), (100, End)],
        CategoriesInRegion => &[(9900, To(SearchInRegion)), (100, End)],
        SearchInCategory => &[(5500, To(ViewItem)), (4500, To(SearchInCategory))],
        SearchInRegion => &[(5500, To(ViewItem)), (4500, To(SearchInRegion))],
        ViewItem => &[(1500, To(UserInfo)), (1000, To(BidHistory)), (7500, Back)],
        UserInfo | BidHistory => &[(1900, To(UserInfo)), (7975, Back), (125, End)],
        // Whoever only looks comes to none of the others.
        _ => &[(WHOLE, To(Browse))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_adds_up_to_one() {
        for mix in [Mix::Bidding, Mix::Browsing] {
            for from in State::ALL {
                let sum: u64 = ways(mix, from).iter().map(|(parts, _)| parts).sum();
                assert_eq!(sum, WHOLE, "{mix:?} {from:?}");
            }
        }
    }
}
