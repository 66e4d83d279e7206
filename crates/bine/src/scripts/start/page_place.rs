//! The place of a page or a service of an application while a scheduler decides.

use std::sync::Arc;
use std::time::Duration;

use bine_http::Status;
use bine_server::Incoming;

use super::dispatcher::{Dispatcher, WaitingJob};
use super::events::RequestFacts;
use super::page_cell::PageCell;
use crate::error::Error;
use crate::visitor_message::VisitorMessage;

/// A place among the requests that run. Dropping it frees the place.
pub(in crate::scripts) struct PagePlace {
    dispatcher: Arc<Dispatcher>,
    id: u64,
}

/// A request that wants to run.
pub(in crate::scripts) struct PageRequest<'r> {
    pub(in crate::scripts) request: &'r Incoming<'r>,
    pub(in crate::scripts) handler: &'static str,
    /// How long it may wait.
    pub(in crate::scripts) patience: Duration,
}

impl Dispatcher {
    /// Waits for a place.
    ///
    /// # Errors
    ///
    /// The policy rejects the request, the queue is full, or the request has waited too long: 503.
    pub(in crate::scripts) fn enter(
        self: &Arc<Self>,
        page: &PageRequest<'_>,
    ) -> impl Future<Output = Result<PagePlace, Error>> + use<> {
        let PageRequest { request, handler, patience } = *page;
        let cell = Arc::<PageCell>::default();
        let facts = RequestFacts::of(request, handler);
        let queued = self.enqueue(facts, WaitingJob::Page(Arc::clone(&cell)));
        // The place exists before the first wait, so that a dropped request is removed from the queue.
        let place = queued.map(|id| PagePlace { dispatcher: Arc::clone(self), id });
        async move {
            let busy = || Error::told(Status::SERVICE_UNAVAILABLE, VisitorMessage::ServerBusy {});
            let Ok(place) = place else { return Err(busy()) };
            match tokio::time::timeout(patience, cell.decided()).await {
                Ok(true) => Ok(place),
                Ok(false) | Err(_) => Err(busy()),
            }
        }
    }
}

impl Drop for PagePlace {
    fn drop(&mut self) {
        self.dispatcher.end(self.id);
    }
}
