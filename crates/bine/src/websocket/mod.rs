//! The WebSocket support for handlers: accepts upgrades, sends and receives messages.

mod connection;

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bine_http::websocket::{self as protocol, Frame, MessageLimits, UpgradeError};
use bine_http::{Date, Finished, Status};
use bine_server::{self as server, Disconnected, Follow, Incoming, Retained};

use crate::arguments::{FromRequest, Rejection, RequestParts};
use crate::error::Error;
use crate::origin::is_foreign;
use crate::respond::{CustomContent, Response, ResponseHead, ResponseWriter};

use connection::WebSocketConnection;

pub use bine_http::websocket::CloseCode;

/// A request that may become a WebSocket, as an argument of a page.
///
/// ```
/// use bine::{Response, Upgrade, page};
///
/// #[page("/echo")]
/// async fn echo(upgrade: Upgrade) -> Response {
///     upgrade.accept(async |mut socket| {
///         while let Some(message) = socket.receive().await? {
///             socket.send(message).await?;
///         }
///         Ok(())
///     })
/// }
/// # let _ = bine::App::new().page(echo);
/// ```
///
/// Only pages of the same host may open it, since a browser sends the visitor's cookies whatever
/// page opens it (RFC 6455 section 10.2). [`allow_any_origin`](Self::allow_any_origin) allows pages
/// of all hosts. Programs other than browsers send no `Origin` and are allowed.
#[derive(Clone, Debug)]
pub struct Upgrade {
    request: Retained,
    options: UpgradeOptions,
}

/// The options of an upgrade.
#[derive(Clone, Debug)]
pub(crate) struct UpgradeOptions {
    from_anywhere: bool,
    protocols: &'static [&'static str],
    limits: MessageLimits,
    ping_interval: Duration,
}

/// Silence after which the server sends a ping.
const PING_INTERVAL: Duration = Duration::from_secs(30);

impl Upgrade {
    /// Accepts the upgrade and runs `handler` with the WebSocket. A request without an upgrade
    /// receives an error response.
    ///
    /// `handler` runs on the event loop of its thread and must not block. The server sends and answers
    /// pings while `handler` awaits anything. When `handler` returns, the WebSocket is closed with
    /// code 1000, or 1011 after an error. When the server stops or the connection ends,
    /// [`receive`](WebSocket::receive) returns `None` or an error, and 10 seconds later `handler`
    /// is dropped.
    pub fn accept<F>(self, handler: impl FnOnce(WebSocket) -> F + Send + 'static) -> Response
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        Response::custom(Status::SWITCHING_PROTOCOLS, self.opening(handler))
    }

    /// Allows pages of other hosts to open it.
    #[must_use]
    pub const fn allow_any_origin(mut self) -> Self {
        self.options.from_anywhere = true;
        self
    }

    /// Sets the supported subprotocols. The server selects the first that the client offers.
    #[must_use]
    pub const fn with_protocols(mut self, protocols: &'static [&'static str]) -> Self {
        self.options.protocols = protocols;
        self
    }

    /// Sets the largest message in bytes; the default is a megabyte. A longer message closes the
    /// WebSocket (1009).
    #[must_use]
    pub const fn with_max_message_size(mut self, bytes: u32) -> Self {
        self.options.limits.message = bytes;
        self
    }

    /// Sets the silence after which the server sends a ping; the default is 30 seconds. The server
    /// drops a connection that does not answer within a third of that time, or accepts no data for
    /// that time.
    #[must_use]
    pub const fn with_ping_interval(mut self, every: Duration) -> Self {
        self.options.ping_interval = every;
        self
    }

    pub(crate) fn of(request: &Incoming<'_>) -> Self {
        let (from_anywhere, protocols, limits) = (false, [].as_slice(), MessageLimits::default());
        let options =
            UpgradeOptions { from_anywhere, protocols, limits, ping_interval: PING_INTERVAL };
        Self { request: Retained::of(request), options }
    }

    /// The content of the response that accepts the upgrade.
    pub(crate) fn opening<F>(self, handler: impl FnOnce(WebSocket) -> F + Send + 'static) -> Opening
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let handler = Box::new(|socket| Box::pin(handler(socket)) as HandlerFuture);
        Opening { request: self.request, options: self.options, handler }
    }
}

impl FromRequest for Upgrade {
    fn from_request(
        request: &mut RequestParts<'_>,
        _name: &'static str,
    ) -> Result<Self, Rejection> {
        Ok(Self::of(request.incoming))
    }
}

/// A handler of a WebSocket.
type HandlerFn = Box<dyn FnOnce(WebSocket) -> HandlerFuture + Send>;
type HandlerFuture = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// An upgrade whose response is not written yet.
pub(crate) struct Opening {
    request: Retained,
    options: UpgradeOptions,
    handler: HandlerFn,
}

/// Why an upgrade is rejected.
pub(crate) enum Refused {
    /// The request is not a valid upgrade.
    Unfit(UpgradeError),
    /// A page of a different host has sent it.
    Foreign,
}

impl Opening {
    /// Writes the 101 response with `fields` and returns the upgrade that follows it.
    pub(crate) fn agree(
        self,
        fields: &[(Cow<'static, str>, Cow<'static, str>)],
        date: &Date,
        out: &mut Vec<u8>,
    ) -> Result<server::Upgrade, Refused> {
        let Self { request, options, handler } = self;
        let head = request.incoming().head;
        let upgrade = protocol::Upgrade::parse(&head).map_err(Refused::Unfit)?;
        if !options.from_anywhere && is_foreign(&head) {
            return Err(Refused::Foreign);
        }
        let chosen = upgrade.select_protocol(options.protocols);
        let protocol = options.protocols.iter().find(|spoken| Some(**spoken) == chosen).copied();
        let mut reply = upgrade.accept(out, date, options.protocols);
        for (name, value) in fields {
            if let Err(misuse) = reply.field(name, value) {
                bine_log::error(format_args!("the field `{name}` was left out: {misuse}"));
            }
        }
        reply.empty();
        let UpgradeOptions { limits, ping_interval, .. } = options;
        Ok(server::Upgrade::new(move |wire| {
            let connection = Rc::new(WebSocketConnection::new(wire, limits, ping_interval));
            let socket = WebSocket { connection: Rc::clone(&connection), protocol };
            Box::pin(connection::run(connection, || handler(socket)))
        }))
    }
}

impl CustomContent for Opening {
    /// Writes the 101 response, or an error response that keeps HTTP.
    fn respond(self: Box<Self>, top: ResponseHead, to: &mut ResponseWriter<'_, '_>) -> Finished {
        let top = &*to.complete(&top);
        let exchange = to.exchange();
        let (out, date) = to.output();
        match self.agree(&top.fields, date, out) {
            Ok(upgrade) => {
                to.follow = Some(Follow::Upgrade(upgrade));
                return Finished { close: false };
            }
            Err(Refused::Unfit(refusal)) => refusal.reply(out, exchange, date),
            Err(Refused::Foreign) => {
                let message = "Only pages of this host may open this WebSocket.";
                return to.write_error(Status::FORBIDDEN, message);
            }
        }
        Finished { close: !exchange.keep_alive }
    }
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

/// A message to send: text, bytes, or a [`Message`].
pub trait IntoMessage {
    /// The frame of the message.
    #[doc(hidden)]
    fn frame(&self) -> Frame<'_>;
}

/// A WebSocket (RFC 6455). Dropping it does not close it; it closes when its handler returns.
pub struct WebSocket {
    connection: Rc<WebSocketConnection>,
    protocol: Option<&'static str>,
}

impl WebSocket {
    /// Receives the next message; `None`: either side has closed. It is cancel safe.
    ///
    /// # Errors
    ///
    /// The connection ended without a close frame, or the client violated the protocol.
    pub async fn receive(&mut self) -> Result<Option<Message>, Disconnected> {
        poll_fn(|task| self.connection.poll_message(task)).await
    }

    /// Sends a message after those sent before. Waits while 64 KiB are unsent.
    ///
    /// # Errors
    ///
    /// Either side has closed, or the connection has ended.
    pub async fn send(&mut self, message: impl IntoMessage) -> Result<(), Disconnected> {
        poll_fn(|task| self.connection.poll_room(task)).await?;
        self.connection.send(&message.frame());
        Ok(())
    }

    /// Closes the WebSocket: it sends no further messages and discards those still received. The
    /// `reason`, for people, is cut at 123 bytes.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        self.connection.close(code, reason);
    }

    /// The client's close code and reason, if it sent them.
    pub fn closed(&self) -> Option<(CloseCode, String)> {
        self.connection.close_reason()
    }

    /// The selected subprotocol.
    pub const fn protocol(&self) -> Option<&'static str> {
        self.protocol
    }
}

impl IntoMessage for Message {
    fn frame(&self) -> Frame<'_> {
        match self {
            Self::Text(text) => Frame::Text(text),
            Self::Binary(bytes) => Frame::Binary(bytes),
        }
    }
}

impl IntoMessage for str {
    fn frame(&self) -> Frame<'_> {
        Frame::Text(self)
    }
}

impl IntoMessage for String {
    fn frame(&self) -> Frame<'_> {
        Frame::Text(self)
    }
}

impl IntoMessage for [u8] {
    fn frame(&self) -> Frame<'_> {
        Frame::Binary(self)
    }
}

impl IntoMessage for Vec<u8> {
    fn frame(&self) -> Frame<'_> {
        Frame::Binary(self)
    }
}

impl<S: IntoMessage + ?Sized> IntoMessage for &S {
    fn frame(&self) -> Frame<'_> {
        (**self).frame()
    }
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a WebSocket")
    }
}
