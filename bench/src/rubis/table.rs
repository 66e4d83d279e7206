//! The transition probabilities of visitors, in parts of ten thousand.

use super::{Mix, State};

/// The next action of a visitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Move {
    To(State),
    /// To the previous page, as with the browser's Back button.
    Back,
    /// The end of the session.
    End,
}

use Move::{Back, End, To};
use State::{
    AboutMe, AboutMeAuth, BidAuth, BidHistory, Browse, BrowseCategories, BrowseRegions, BuyNow,
    BuyNowAuth, CategoriesInRegion, CommentAuth, Home, PutBid, PutComment, RegisterForm,
    RegisterItem, RegisterUser, SearchInCategory, SearchInRegion, SelectCategory, Sell, SellForm,
    StoreBid, StoreBuyNow, StoreComment, UserInfo, ViewItem,
};

/// The sum of all moves of a page.
pub(super) const WHOLE: u64 = 10_000;

/// The moves from a page.
pub(super) const fn moves(mix: Mix, from: State) -> &'static [(u64, Move)] {
    match mix {
        Mix::Bidding => bidding(from),
        Mix::Browsing => browsing(from),
    }
}

/// Moves after a write.
const DONE: &[(u64, Move)] = &[
    (5800, To(Browse)),
    (2000, End),
    (1500, To(AboutMeAuth)),
    (500, To(Sell)),
    (100, To(Home)),
    (100, To(RegisterForm)),
];

/// The expected click, or rarely one in the menu of every page.
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

/// The moves of bidders. (Long because it is a table.)
const fn bidding(from: State) -> &'static [(u64, Move)] {
    match from {
        // Three percent request the home page again.
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
        // Some visitors leave and some log in again: five percent of the sessions end here.
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

/// The moves of browsing visitors; the rare ends determine their mean length.
const fn browsing(from: State) -> &'static [(u64, Move)] {
    match from {
        Browse => &[(7000, To(BrowseCategories)), (2900, To(BrowseRegions)), (100, End)],
        BrowseCategories => &[(9900, To(SearchInCategory)), (100, End)],
        BrowseRegions => &[(9900, To(CategoriesInRegion)), (100, End)],
        CategoriesInRegion => &[(9900, To(SearchInRegion)), (100, End)],
        SearchInCategory => &[(5500, To(ViewItem)), (4500, To(SearchInCategory))],
        SearchInRegion => &[(5500, To(ViewItem)), (4500, To(SearchInRegion))],
        ViewItem => &[(1500, To(UserInfo)), (1000, To(BidHistory)), (7500, Back)],
        UserInfo | BidHistory => &[(1900, To(UserInfo)), (7975, Back), (125, End)],
        // Browsing visitors never reach the remaining pages.
        _ => &[(WHOLE, To(Browse))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_every_line_to_one() {
        for mix in [Mix::Bidding, Mix::Browsing] {
            for from in State::ALL {
                let sum: u64 = moves(mix, from).iter().map(|(parts, _)| parts).sum();
                assert_eq!(sum, WHOLE, "{mix:?} {from:?}");
            }
        }
    }
}
