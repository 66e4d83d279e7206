//! One call: its time limits, its single attempt if it may change data, and the limit on its
//! answer.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bine_http::Status;
use rustls::ClientConfig;
use tokio::time::{Instant, timeout_at};

use super::address::Address;
use super::answer::{Head, RemoteResponse};
use super::connection::RemoteConnection;
use super::error::Error;
use super::pool::ServerPool;
use super::trust;

/// A request, its destination and its limits.
#[derive(Clone, Debug)]
pub(super) struct RemoteRequest {
    pub(super) address: Address,
    /// The trusted certificates; `None`: the system's.
    pub(super) roots: Option<Arc<ClientConfig>>,
    /// The request head with its empty line.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    /// Whether the method is HEAD.
    pub(super) is_head: bool,
    /// Whether the request may be sent again if the first attempt had no response.
    pub(super) is_safe: bool,
    pub(super) connect_timeout: Duration,
    pub(super) timeout: Duration,
    pub(super) max_answer: usize,
}

impl RemoteRequest {
    /// Sends the request and returns the body of the response: JSON, or `null` if it is empty.
    pub(super) async fn perform(self) -> Result<Vec<u8>, Error> {
        let (head, body) = self.response().await?;
        self.check_response(&head, body)
    }

    /// Sends the request and returns the response, whatever its status is.
    pub(super) async fn response(&self) -> Result<(Head, Vec<u8>), Error> {
        let deadline = Instant::now() + self.timeout;
        let pool = self.pool();
        let describe = |what: &str| format!("{}: {what}", self.address);
        let Ok(permit) = timeout_at(deadline, pool.permits.acquire()).await else {
            return Err(Error::Unreached(describe("too many calls to this server are running")));
        };
        let _permit = permit.map_err(|_| Error::Unreached(describe("closed")))?;
        let mut idle = pool.take();
        loop {
            let was_kept = idle.is_some();
            let connection = match idle.take() {
                Some(connection) => connection,
                None => self.open(deadline).await?,
            };
            match timeout_at(deadline, self.exchange(connection, &pool)).await {
                Ok(Ok(response)) => return Ok(response),
                // The server closed the idle connection while the request was sent.
                Ok(Err((_, true))) if was_kept && self.is_safe => {}
                Ok(Err((error, _))) => return Err(error),
                Err(_) => return Err(Error::TimedOut(describe("no answer in time"))),
            }
        }
    }

    fn pool(&self) -> Arc<ServerPool> {
        ServerPool::of(&self.address, self.roots.as_ref())
    }

    /// Opens a connection within its time limit, including the time to load the trusted
    /// certificates.
    pub(super) async fn open(&self, deadline: Instant) -> Result<RemoteConnection, Error> {
        let unreached = |what: &dyn Display| Error::Unreached(format!("{}: {what}", self.address));
        let deadline = deadline.min(Instant::now() + self.connect_timeout);
        let opened = async {
            let trust = match (&self.roots, self.address.is_tls) {
                (_, false) => None,
                (Some(roots), true) => Some(Arc::clone(roots)),
                (None, true) => Some(trust::system_config().await?),
            };
            RemoteConnection::open(&self.address, trust, deadline).await
        };
        match timeout_at(deadline, opened).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(unreached(&error)),
            Err(_) => Err(unreached(&"no connection in time")),
        }
    }

    /// Sends the request.
    pub(super) async fn send(&self, connection: &mut RemoteConnection) -> std::io::Result<()> {
        connection.send(&[self.head.as_bytes(), &self.body].concat()).await
    }

    /// Sends the request and receives the response on this connection, which returns to the pool if
    /// it can be reused. The error's flag: no byte was received.
    async fn exchange(
        &self,
        mut connection: RemoteConnection,
        pool: &ServerPool,
    ) -> Result<(Head, Vec<u8>), (Error, bool)> {
        let describe = |what: &dyn Display| format!("{}: {what}", self.address);
        let sent = self.send(&mut connection).await;
        // A server may reject the request before reading it completely: the response is more useful
        // than the write error.
        let mut answer = RemoteResponse::to_request(self.is_head);
        let (mut head, mut body) = (None::<Head>, Vec::new());
        let mut has_ended = false;
        loop {
            let broken = |answer: &RemoteResponse, what: &dyn Display| {
                (Error::Unanswered(describe(what)), answer.is_untouched())
            };
            if head.is_none() {
                head = answer.head().map_err(|what| broken(&answer, &what))?;
            }
            if let Some(seen) = &head
                && answer.body(has_ended, &mut body).map_err(|what| broken(&answer, &what))?
            {
                if body.len() > self.max_answer {
                    break;
                }
                if seen.is_reusable && !has_ended && sent.is_ok() && answer.is_clean() {
                    pool.keep(connection);
                }
                return Ok((seen.clone(), body));
            }
            if body.len() > self.max_answer {
                break;
            }
            if has_ended {
                let what = "the connection ended before an answer";
                return Err(match &sent {
                    Err(error) => broken(&answer, error),
                    Ok(()) => broken(&answer, &what),
                });
            }
            let received = connection.receive(answer.incoming()).await;
            has_ended = match received {
                Ok(count) => count == 0,
                Err(error) => return Err(broken(&answer, sent.as_ref().err().unwrap_or(&error))),
            };
        }
        let long = format!("its answer has more than {} bytes", self.max_answer);
        Err((Error::Misunderstood(describe(&long)), false))
    }

    fn check_response(&self, head: &Head, body: Vec<u8>) -> Result<Vec<u8>, Error> {
        let describe = |what: String| Error::Misunderstood(format!("{}: {what}", self.address));
        match head.status {
            // TLS authenticates the end (RFC 8446 section 6.1). Without TLS, a server that crashed
            // after the head looks the same.
            200..300 if body.is_empty() && head.is_close_delimited && !self.address.is_tls => {
                let what = "the connection ended after the head of an answer without a length";
                Err(Error::Unanswered(format!("{}: {what}", self.address)))
            }
            200..300 if body.is_empty() => Ok(b"null".to_vec()),
            200..300 if crate::arguments::is_json(&head.kind) => Ok(body),
            200..300 => Err(describe(format!("it answered with `{}`, not with JSON", head.kind))),
            status => match Status::new(status).filter(|_| status >= 400) {
                Some(status) => Err(Error::refused(&self.address, status, &head.kind, &body)),
                None => {
                    Err(describe(format!("it answered {status}, which is no answer of a service")))
                }
            },
        }
    }
}
