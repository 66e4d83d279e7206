//! The `Presence` argument: the users that are present on a page.

use std::fmt;
use std::sync::{Arc, MutexGuard};

use super::address::address;
use super::presence::{PagePresence, PresenceMap, PresentTabs};
use super::render::Render;
use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
#[cfg(feature = "script")]
use crate::service::Caller;
use crate::text::Text;

/// The people present on this page, as an argument of its handler. A browser tab counts while it
/// follows the page by an event stream, which takes a script; a tab that polls is not counted. A
/// region that displays a count or the names updates when tabs connect and disconnect.
///
/// ```
/// use bine::prelude::*;
///
/// #[page("/")]
/// async fn lobby(presence: Presence) -> impl Page {
///     html!(<Live><p>{presence.people()} are here: {presence.names(20).join(", ")}</p></Live>)
/// }
/// # let _ = App::new().page(lobby);
/// ```
#[derive(Clone)]
pub struct Presence(Arc<PagePresence>);

impl Presence {
    fn of(places: Option<&PresenceMap>, address: &Arc<str>) -> Self {
        let known = places.and_then(|places| places.find(address));
        // An empty presence is registered only when a browser joins.
        Self(known.unwrap_or_default())
    }

    /// Returns how many people follow this page. All tabs of a user are one person, and so are all
    /// tabs of a session without a login. Each tab of a browser without a session counts as one
    /// person.
    pub fn people(&self) -> usize {
        self.look().people()
    }

    /// Returns how many browser tabs follow this page.
    pub fn tabs(&self) -> usize {
        self.look().count()
    }

    /// Returns at most `most` names, each once: the login name of a user, otherwise the name of the
    /// [session](crate::Session::name). A browser without a session has no name.
    pub fn names(&self, most: usize) -> Vec<Text> {
        let mut names: Vec<Text> = Vec::new();
        for name in self.look().names() {
            if names.len() >= most {
                break;
            }
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    fn look(&self) -> MutexGuard<'_, PresentTabs> {
        // From now on the view counts its followers as present.
        if let Some(render) = Render::current() {
            render.record_presence(&self.0);
        }
        self.0.changed.with(|()| {});
        self.0.tabs()
    }
}

#[cfg(feature = "script")]
impl Caller {
    /// The presence of the page that is requested.
    pub(crate) fn presence(&self) -> Presence {
        let places = self.app().states.find::<PresenceMap>();
        Presence::of(places, &address(&self.unrecorded_request()))
    }
}

impl FromRequest for Presence {
    fn from_request(
        request: &mut RequestParts<'_>,
        _name: &'static str,
    ) -> Result<Self, Rejection> {
        let places = request.app.states.find::<PresenceMap>();
        Ok(Self::of(places, &address(request.incoming)))
    }

    fn needs(_needs: &mut Needs) {}
}

impl fmt::Debug for Presence {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(self.0.tabs().names()).finish()
    }
}
