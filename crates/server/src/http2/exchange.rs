//! One stream of a connection: its request goes through a memory stream to the event loop, and the
//! response comes back.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures_util::stream::{FuturesUnordered, Stream as _};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, Response, StatusCode};
use tokio::time::Instant;

use crate::http2::link::{Link, OpenStream};
use crate::http2::request_head::{RequestBody, request_head};
use crate::http2::response_reader::{Malformed, Part, ResponseReader};
use crate::http2::send_order::{Priority, UrgentClaim};
use crate::memory_stream::{ClientEnd, Closed};

/// The bytes that a stream sends in one turn, as many as one frame has by default (RFC 9113, section
/// 4.2).
const PIECE: usize = 16 * 1024;

/// Why an exchange ends before its response is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cut {
    /// The client has reset the stream, or the connection has ended.
    ByClient,
    /// The server cannot complete the response.
    ByServer(Reason),
}

impl From<Malformed> for Cut {
    fn from(_: Malformed) -> Self {
        Self::ByServer(Reason::INTERNAL_ERROR)
    }
}

/// The exchanges of one connection.
pub(super) trait Exchanges {
    /// Begins an exchange, or refuses its request.
    fn begin(
        &mut self,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        link: &Rc<Link>,
    );

    /// Continues those that can continue. Returns whether one has ended.
    fn poll(&mut self, task: &mut Context<'_>) -> bool;
}

/// Returns a set without an exchange. Its exchanges run in the task that polls it, since a task for each
/// one costs an aligned allocation, which is several times as slow.
pub(super) fn exchanges() -> impl Exchanges {
    ExchangeSet { begin, running: FuturesUnordered::new() }
}

struct ExchangeSet<B, E> {
    begin: B,
    running: FuturesUnordered<E>,
}

impl<B, E> Exchanges for ExchangeSet<B, E>
where
    B: Fn(Request<RecvStream>, SendResponse<Bytes>, &Rc<Link>) -> Option<E>,
    E: Future<Output = ()>,
{
    fn begin(
        &mut self,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        link: &Rc<Link>,
    ) {
        self.running.extend((self.begin)(request, respond, link));
    }

    fn poll(&mut self, task: &mut Context<'_>) -> bool {
        let mut has_ended = false;
        while let Poll::Ready(Some(())) = Pin::new(&mut self.running).poll_next(task) {
            has_ended = true;
        }
        has_ended
    }
}

/// Gives a request to the event loop. The returned future carries its body and its response. `None`:
/// the request is refused.
// Not an async function: each of its variables would make the future larger, and the allocator is
// slower for more than a kilobyte.
fn begin(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    link: &Rc<Link>,
) -> Option<impl Future<Output = ()> + use<>> {
    let (parts, body) = request.into_parts();
    let (head, kind) = match request_head(&parts, !body.is_end_stream()) {
        Ok(written) => written,
        Err(refused) => {
            refuse(&mut respond, refused.0);
            return None;
        }
    };
    let reader = ResponseReader::new(parts.method == Method::HEAD, kind == RequestBody::Tunnel);
    let priority = Priority::parse(parts.headers.get("priority").map(http::HeaderValue::as_bytes));
    let end = link.queue.open(head, link.peer);
    let exchange = Exchange { respond, reader, priority, open: link.open(), end };
    Some(exchange.run(body, kind))
}

/// A request that the event loop has, and what its response needs.
struct Exchange {
    respond: SendResponse<Bytes>,
    reader: ResponseReader,
    priority: Priority,
    open: OpenStream,
    end: ClientEnd,
}

impl Exchange {
    /// Runs to the end of the response.
    async fn run(self, body: RecvStream, kind: RequestBody) {
        let Self { respond, reader, priority, open, end } = self;
        let mut sender = ResponseSender {
            respond,
            sending: None,
            reader,
            priority,
            claim: None,
            link: open.link(),
            end: &end,
        };
        let outcome = {
            let mut upload = pin!(upload(body, &end, kind));
            let mut is_uploaded = false;
            let mut answered = pin!(sender.run());
            poll_fn(|task| {
                is_uploaded = is_uploaded || upload.as_mut().poll(task).is_ready();
                answered.as_mut().poll(task)
            })
            .await
        };
        match outcome {
            Ok(()) => {}
            Err(Cut::ByClient) => open.link().note_reset(),
            Err(Cut::ByServer(reason)) => sender.reset(reason),
        }
    }
}

/// Answers a request that the event loop never sees.
fn refuse(respond: &mut SendResponse<Bytes>, status: u16) {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    // An error means that the stream has ended.
    let _ = respond.send_response(response, true);
}

/// Gives the content of the request to the server.
async fn upload(mut body: RecvStream, end: &ClientEnd, kind: RequestBody) {
    if kind == RequestBody::Empty {
        return;
    }
    while let Some(received) = poll_fn(|task| body.poll_data(task)).await {
        // After a reset the response side ends the exchange.
        let Ok(mut data) = received else { return };
        let length = data.len();
        let written = match kind {
            RequestBody::Chunked if length == 0 => Ok(()),
            RequestBody::Chunked => {
                let size = format!("{length:x}\r\n");
                match write(end, &mut size.as_bytes()).await {
                    Ok(()) => match write(end, &mut data).await {
                        Ok(()) => write(end, &mut &b"\r\n"[..]).await,
                        closed => closed,
                    },
                    closed => closed,
                }
            }
            _ => write(end, &mut data).await,
        };
        // The server reads no more, but its response may still be on its way.
        if written.is_err() || body.flow_control().release_capacity(length).is_err() {
            return;
        }
    }
    match kind {
        // An error means that the server has ended the exchange.
        RequestBody::Chunked => drop(write(end, &mut &b"0\r\n\r\n"[..]).await),
        RequestBody::Tunnel => end.finish(),
        RequestBody::Sized | RequestBody::Empty => {}
    }
}

async fn write(end: &ClientEnd, bytes: &mut impl bytes::Buf) -> Result<(), Closed> {
    while bytes.has_remaining() {
        let count = poll_fn(|task| end.poll_write(task, bytes.chunk())).await?;
        bytes.advance(count);
    }
    Ok(())
}

/// The response side of an exchange.
struct ResponseSender<'e> {
    respond: SendResponse<Bytes>,
    /// The content, once the head has been sent.
    sending: Option<SendStream<Bytes>>,
    reader: ResponseReader,
    priority: Priority,
    /// Held while the rest of the response is on its way.
    claim: Option<UrgentClaim<'e>>,
    link: &'e Link,
    end: &'e ClientEnd,
}

impl ResponseSender<'_> {
    /// Sends the response as the server writes it.
    async fn run(&mut self) -> Result<(), Cut> {
        while !self.reader.is_over() {
            let received = poll_fn(|task| self.poll_received(task)).await?;
            let Some(bytes) = received else { return self.end().await };
            self.reader.push(bytes);
            while let Some(part) = self.reader.next()? {
                self.send(part).await?;
            }
        }
        Ok(())
    }

    /// Waits for bytes of the server, or for a reset by the client.
    fn poll_received(&mut self, task: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Cut>> {
        let reset = match &mut self.sending {
            Some(sending) => sending.poll_reset(task),
            None => self.respond.poll_reset(task),
        };
        if reset.is_ready() {
            return Poll::Ready(Err(Cut::ByClient));
        }
        self.end.poll_read(task).map(Ok)
    }

    /// The server has closed the stream.
    async fn end(&mut self) -> Result<(), Cut> {
        if self.reader.is_at_head() && !self.end.has_begun() {
            // The server is full. The client may try again (RFC 9113, section 8.7).
            return Err(Cut::ByServer(Reason::REFUSED_STREAM));
        }
        match self.reader.end()? {
            Some(part) => self.send(part).await,
            None => Ok(()),
        }
    }

    async fn send(&mut self, part: Part) -> Result<(), Cut> {
        match part {
            Part::Informational(response) => {
                self.respond.send_informational(response).map_err(|_| Cut::ByClient)
            }
            Part::Head { response, is_last } => {
                let sending = self.respond.send_response(response, is_last);
                self.sending = Some(sending.map_err(|_| Cut::ByClient)?);
                Ok(())
            }
            Part::Data { bytes, is_last } => self.send_data(bytes, is_last).await,
        }
    }

    async fn send_data(&mut self, mut bytes: Bytes, is_last: bool) -> Result<(), Cut> {
        let Some(sending) = &mut self.sending else { return Err(Malformed.into()) };
        if bytes.is_empty() {
            return sending.send_data(bytes, is_last).map_err(|_| Cut::ByClient);
        }
        let place = self.link.order.place(sending.stream_id().as_u32(), self.priority);
        let mut deadline = None;
        while !bytes.is_empty() {
            sending.reserve_capacity(bytes.len().min(PIECE));
            let room = match sending.capacity() {
                0 => {
                    // Others need not wait for this client.
                    self.claim = None;
                    Box::pin(capacity(sending, &mut deadline, self.link)).await?
                }
                room => room,
            };
            if self.claim.is_none() && self.reader.expects_more() {
                self.claim = Some(self.link.order.claim(self.priority));
            }
            let count = room.min(bytes.len()).min(PIECE);
            poll_fn(|task| place.poll(task, count)).await;
            let piece = bytes.split_to(count);
            let ends = is_last && bytes.is_empty();
            sending.send_data(piece, ends).map_err(|_| Cut::ByClient)?;
            self.link.note_sent(count);
            extend(&mut deadline, count, self.link);
        }
        Ok(())
    }

    /// Resets the stream, so that the client does not take a part for the whole.
    fn reset(&mut self, reason: Reason) {
        match &mut self.sending {
            Some(sending) => sending.send_reset(reason),
            None => self.respond.send_reset(reason),
        }
    }
}

/// Waits until the client can receive, and returns the number of bytes. As over HTTP/1.1, the client
/// has a limited time, which each byte extends.
async fn capacity(
    sending: &mut SendStream<Bytes>,
    deadline: &mut Option<Instant>,
    link: &Link,
) -> Result<usize, Cut> {
    let until = *deadline.get_or_insert_with(|| Instant::now() + link.settings.timeouts.write);
    let mut late = pin!(tokio::time::sleep_until(until));
    poll_fn(|task| {
        loop {
            match sending.poll_capacity(task) {
                Poll::Ready(Some(Ok(0))) => {}
                Poll::Ready(Some(Ok(room))) => return Poll::Ready(Ok(room)),
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Err(Cut::ByClient)),
                Poll::Pending => break,
            }
        }
        late.as_mut().poll(task).map(|()| Err(Cut::ByServer(Reason::CANCEL)))
    })
    .await
}

/// Extends the deadline of a client that has received `count` bytes, at the minimum rate.
fn extend(deadline: &mut Option<Instant>, count: usize, link: &Link) {
    if let Some(deadline) = deadline {
        let timeouts = &link.settings.timeouts;
        let bought = (count as u64 * 1000).div_ceil(u64::from(timeouts.rate.max(1)));
        let latest = Instant::now() + timeouts.write;
        *deadline = (*deadline + Duration::from_millis(bought)).min(latest);
    }
}
