//! The `Positions` argument: what this node has applied, and a wait for the commits of other nodes.

use std::fmt::{self, Display, Formatter};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bine_http::Status;

use crate::app_state::AppState;
use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
use crate::error::{ErrorMapping, MappedError};
use crate::position::Position;
use crate::read_position::{ReadPositions, Waited};
use crate::store::Store;
use crate::tables::{HasTables, Tables};
use crate::visitor_message::VisitorMessage;

/// The positions of this node, as an argument of a page; a service has
/// [`Caller::positions`](crate::Caller::positions).
///
/// A program on one machine has them too: it has applied all its positions, so no wait takes time.
///
/// ```
/// use std::time::Duration;
///
/// use bine::prelude::*;
/// use bine::{Position, Positions};
///
/// /// Shows the orders, after the change that another server has made at a different node.
/// #[page("/orders")]
/// async fn orders(after: Query<Position>, positions: Positions) -> Result<impl Page, Error> {
///     positions.wait_for(*after, Duration::from_secs(2)).await?;
///     Ok(html!(<p>"up to date"</p>))
/// }
/// ```
#[derive(Clone)]
pub struct Positions {
    store: Store,
    /// Empty on one machine.
    node: Option<Arc<ReadPositions>>,
}

/// Why a wait for a position has ended without it. As an error of a page or service, it is a 503.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PositionError {
    /// This node has not applied the position in time.
    TimedOut,
    /// This node is cut off from the others, so that its data may be old.
    CutOff,
    /// Too many calls and requests of this node wait.
    Busy,
}

/// The positions of a node of a cluster, once it runs.
#[derive(Clone, Default)]
pub(crate) struct NodePositions(Arc<OnceLock<Arc<ReadPositions>>>);

impl Positions {
    /// The longest wait; a longer one is cut to it.
    pub const MAX_WAIT: Duration = Duration::from_secs(30);

    /// The position of the newest commit that this node has applied. It is not before any commit whose
    /// end the caller has awaited.
    pub fn current(&self) -> Position {
        match &self.node {
            Some(node) => node.current(),
            None => {
                Position { sequence: self.store.read().without_tracking().sequence(), order: 0 }
            }
        }
    }

    /// Waits until this node has applied a position, so that later reads see that commit. Waits for at
    /// most `within`, and no longer than [`MAX_WAIT`](Self::MAX_WAIT).
    ///
    /// Returns at once for a position of another stream or of another machine, which has no meaning here.
    ///
    /// # Errors
    ///
    /// The node has not applied it in time, is cut off, or too many wait.
    pub async fn wait_for(
        &self,
        position: Position,
        within: Duration,
    ) -> Result<(), PositionError> {
        let Some(node) = self.node.as_ref().filter(|node| node.is_missing(position)) else {
            return Ok(());
        };
        let place = node.enter_call().ok_or(PositionError::Busy)?;
        match place.wait(position, within.min(Self::MAX_WAIT)).await {
            Waited::Applied => Ok(()),
            Waited::CutOff => Err(PositionError::CutOff),
            Waited::TimedOut => Err(PositionError::TimedOut),
        }
    }

    /// Those of a program; `None`: it has no tables.
    pub(crate) fn of(app: &AppState) -> Option<Self> {
        let store = app.states.find::<Tables>().and_then(Tables::opened)?.clone();
        let node = app.states.find::<NodePositions>().and_then(|node| node.0.get()).cloned();
        Some(Self { store, node })
    }
}

impl NodePositions {
    /// Sets them, once.
    #[cfg(feature = "cluster")]
    pub(crate) fn set(&self, positions: Arc<ReadPositions>) {
        let _ = self.0.set(positions);
    }
}

impl FromRequest for Positions {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let missing = || Rejection::invalid(name, "needs tables, and this program has none");
        Self::of(request.app).ok_or_else(missing)
    }

    fn needs(needs: &mut Needs) {
        needs.require::<HasTables>(
            "takes `Positions`, and the program has no tables; add `.table::<..>()` with each to the app",
        );
    }
}

impl fmt::Debug for Positions {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Positions").field(&self.current()).finish()
    }
}

impl Display for PositionError {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::TimedOut => {
                "this node has not applied the position in time: wait longer, or try again"
            }
            Self::CutOff => "this node is cut off from the others, so that its data may be old",
            Self::Busy => "too many calls of this node wait for positions: try again later",
        })
    }
}

impl std::error::Error for PositionError {}

inventory::submit! {
    ErrorMapping(|error| {
        error.downcast_ref::<PositionError>()?;
        Some(MappedError {
            message: Some(VisitorMessage::ServerBusy {}.into()),
            ..MappedError::new(Status::SERVICE_UNAVAILABLE, None)
        })
    })
}
