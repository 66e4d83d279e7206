//! The pages of the auction site, and which pages write.

/// One of the 27 pages of `RUBiS`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum State {
    Home,
    RegisterForm,
    RegisterUser,
    Browse,
    BrowseCategories,
    SearchInCategory,
    BrowseRegions,
    CategoriesInRegion,
    SearchInRegion,
    ViewItem,
    UserInfo,
    BidHistory,
    BuyNowAuth,
    BuyNow,
    StoreBuyNow,
    BidAuth,
    PutBid,
    StoreBid,
    CommentAuth,
    PutComment,
    StoreComment,
    Sell,
    SelectCategory,
    SellForm,
    RegisterItem,
    AboutMeAuth,
    AboutMe,
}

impl State {
    pub(crate) const ALL: [Self; 27] = [
        Self::Home,
        Self::RegisterForm,
        Self::RegisterUser,
        Self::Browse,
        Self::BrowseCategories,
        Self::SearchInCategory,
        Self::BrowseRegions,
        Self::CategoriesInRegion,
        Self::SearchInRegion,
        Self::ViewItem,
        Self::UserInfo,
        Self::BidHistory,
        Self::BuyNowAuth,
        Self::BuyNow,
        Self::StoreBuyNow,
        Self::BidAuth,
        Self::PutBid,
        Self::StoreBid,
        Self::CommentAuth,
        Self::PutComment,
        Self::StoreComment,
        Self::Sell,
        Self::SelectCategory,
        Self::SellForm,
        Self::RegisterItem,
        Self::AboutMeAuth,
        Self::AboutMe,
    ];

    /// Whether the page changes tables.
    pub(crate) const fn writes(self) -> bool {
        matches!(
            self,
            Self::RegisterUser
                | Self::StoreBuyNow
                | Self::StoreBid
                | Self::StoreComment
                | Self::RegisterItem
        )
    }

    /// Whether a form requests it: to log in, or to write.
    pub(crate) const fn sends_form(self) -> bool {
        let logs_in = matches!(
            self,
            Self::BuyNow
                | Self::PutBid
                | Self::PutComment
                | Self::SelectCategory
                | Self::SellForm
                | Self::AboutMe
        );
        logs_in || self.writes()
    }

    /// The highest number of images on the page: the logo, and a button per listed item.
    pub(crate) const fn most_images(self) -> usize {
        match self {
            Self::SearchInCategory | Self::SearchInRegion => 1 + 20,
            _ => 1,
        }
    }
}
