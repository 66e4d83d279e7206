//! The `ServerHandle` argument: numbers of the running server, for the program's own pages.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bine_server::{Server, process_metrics};

use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};

/// The running server, as an argument of a page that shows its load.
///
/// A region that shows [`stats`](Self::stats) does not update by itself: numbers are not data that
/// a render depends on. Set a [`Signal`](crate::Signal) from a thread, at a calm rate.
///
/// ```
/// use bine::{ServerHandle, prelude::*};
///
/// #[page("/load")]
/// async fn load(server: ServerHandle) -> impl Page {
///     let connections = server.stats().map_or(0, |stats| stats.connections);
///     html!(<p>{connections} connections</p>)
/// }
/// # let _ = App::new().page(load);
/// ```
#[derive(Clone, Default)]
pub struct ServerHandle(Arc<OnceLock<Weak<Server>>>);

/// Numbers of a server at one moment. The metrics endpoint reports them too, and many more.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ServerStats {
    /// Open connections, including those that a different protocol took over.
    pub connections: usize,
    /// Requests with a valid head since the start.
    pub requests: u64,
    /// Bytes of responses since the start, without the overhead of TLS.
    pub sent_bytes: u64,
    /// CPU time of the process since its start, of all threads.
    pub cpu_time: Duration,
    /// Resident memory of the process in bytes; `None` where the kernel does not report it.
    pub resident_bytes: Option<u64>,
}

impl ServerHandle {
    /// Reads the numbers of this moment: some tens of microseconds, independent of the number of
    /// connections. `None`: no server runs, as in a unit test of a page, or it has ended.
    pub fn stats(&self) -> Option<ServerStats> {
        let metrics = self.0.get()?.upgrade()?.metrics();
        let process = process_metrics();
        Some(ServerStats {
            connections: metrics.open,
            requests: metrics.requests,
            sent_bytes: metrics.sent,
            cpu_time: process.cpu,
            resident_bytes: process.resident,
        })
    }

    /// Sets the server, once. A weak reference, so that a thread with a handle does not keep an
    /// ended server alive.
    pub(super) fn set(&self, server: &Arc<Server>) {
        let _ = self.0.set(Arc::downgrade(server));
    }
}

impl FromRequest for ServerHandle {
    fn from_request(
        request: &mut RequestParts<'_>,
        _name: &'static str,
    ) -> Result<Self, Rejection> {
        Ok(request.app.states.find::<Self>().cloned().unwrap_or_default())
    }

    fn needs(_needs: &mut Needs) {}
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("ServerHandle").field(&self.stats()).finish()
    }
}
