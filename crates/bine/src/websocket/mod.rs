//! Decides how a program speaks WebSocket: whom it lets in, and what it sends and receives.

mod line;

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bine_http::websocket::{self as machine, Frame, MessageLimits, UpgradeError};
use bine_http::{Date, Finished, Status};
use bine_server::{self as server, Follow, Gone, Incoming, Retained};

use crate::arguments::{Argument, Arguments, Rejection};
use crate::error::Error;
use crate::origin::is_foreign;
use crate::respond::{CustomContent, Replying, Response, Top};

use line::Line;

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
/// Only a page of the same host may open it, since a browser sends the visitor's cookies along wherever a page comes
/// from (RFC 6455 section 10.2); [`from_anywhere`](Self::from_anywhere) lets all in. Programs that are no browser say
/// no origin, and are let in.
#[derive(Clone, Debug)]
pub struct Upgrade {
    request: Retained,
    terms: Terms,
}

/// What is agreed on before anything is said.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    from_anywhere: bool,
    protocols: &'static [&'static str],
    limits: MessageLimits,
    pause: Duration,
}

/// A peer that says nothing for so long is asked whether it is there.
const PAUSE: Duration = Duration::from_secs(30);

impl Upgrade {
    /// Agrees, and has `talk` speak with the peer; where the request did not ask for a WebSocket, it is told so.
    ///
    /// `talk` runs beside the other connections of its thread and must not block. Pings are sent and answered while it
    /// waits for whatever else. When it returns the WebSocket is closed, with code 1000, or 1011 if it has failed. When
    /// the server stops, or the peer goes, [`receive`](WebSocket::receive) ends, and 10 seconds later `talk` is dropped.
    pub fn accept<F>(self, talk: impl FnOnce(WebSocket) -> F + Send + 'static) -> Response
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        Response::custom(Status::SWITCHING_PROTOCOLS, self.opening(talk))
    }

    /// Lets pages of other hosts open it too.
    #[must_use]
    pub const fn from_anywhere(mut self) -> Self {
        self.terms.from_anywhere = true;
        self
    }

    /// Speaks these subprotocols: of those the first that the peer names is agreed on.
    #[must_use]
    pub const fn speaking(mut self, protocols: &'static [&'static str]) -> Self {
        self.terms.protocols = protocols;
        self
    }

    /// Takes messages of so many bytes, instead of a megabyte. A longer one closes the WebSocket (1009).
    #[must_use]
    pub const fn with_limit(mut self, bytes: u32) -> Self {
        self.terms.limits.message = bytes;
        self
    }

    /// Asks a peer that has said nothing for so long whether it is there, instead of every 30 seconds. One that does not
    /// answer in a third of that, or takes nothing of what it is sent for as long, is let go.
    #[must_use]
    pub const fn with_pings(mut self, every: Duration) -> Self {
        self.terms.pause = every;
        self
    }

    pub(crate) fn of(request: &Incoming<'_>) -> Self {
        let (from_anywhere, protocols, limits) = (false, [].as_slice(), MessageLimits::default());
        let terms = Terms { from_anywhere, protocols, limits, pause: PAUSE };
        Self { request: Retained::of(request), terms }
    }

    /// What is written to agree.
    pub(crate) fn opening<F>(self, talk: impl FnOnce(WebSocket) -> F + Send + 'static) -> Opening
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let talk = Box::new(|socket| Box::pin(talk(socket)) as Talking);
        Opening { request: self.request, terms: self.terms, talk }
    }
}

impl Argument for Upgrade {
    fn take(request: &mut Arguments<'_>, _name: &'static str) -> Result<Self, Rejection> {
        Ok(Self::of(request.incoming))
    }
}

/// Speaks with a peer.
type Talk = Box<dyn FnOnce(WebSocket) -> Talking + Send>;
type Talking = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// An agreement that is yet to be written.
pub(crate) struct Opening {
    request: Retained,
    terms: Terms,
    talk: Talk,
}

/// What is answered instead of a 101.
pub(crate) enum Refused {
    /// What was asked for is no WebSocket.
    Unfit(UpgradeError),
    /// It comes from a page of another host.
    Foreign,
}

impl Opening {
    /// Writes the 101, with `fields`, and says what follows it.
    pub(crate) fn agree(
        self,
        fields: &[(Cow<'static, str>, Cow<'static, str>)],
        date: &Date,
        out: &mut Vec<u8>,
    ) -> Result<server::Upgrade, Refused> {
        let Self { request, terms, talk } = self;
        let head = request.incoming().head;
        let upgrade = machine::Upgrade::parse(&head).map_err(Refused::Unfit)?;
        if !terms.from_anywhere && is_foreign(&head) {
            return Err(Refused::Foreign);
        }
        let chosen = upgrade.select_protocol(terms.protocols);
        let protocol = terms.protocols.iter().find(|spoken| Some(**spoken) == chosen).copied();
        let mut reply = upgrade.accept(out, date, terms.protocols);
        for (name, value) in fields {
            if let Err(misuse) = reply.field(name, value) {
                bine_log::error(format_args!("the field `{name}` was left out: {misuse}"));
            }
        }
        reply.empty();
        let Terms { limits, pause, .. } = terms;
        Ok(server::Upgrade::new(move |wire| {
            let line = Rc::new(Line::new(wire, limits, pause));
            let socket = WebSocket { line: Rc::clone(&line), protocol };
            Box::pin(line::run(line, || talk(socket)))
        }))
    }
}

impl CustomContent for Opening {
    /// Writes the 101, or the reason why the connection stays with HTTP.
    fn respond(self: Box<Self>, top: Top, to: &mut Replying<'_, '_>) -> Finished {
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

/// What was said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

/// What can be sent: text, bytes, or a [`Message`].
pub trait Say {
    /// The frame that says it.
    #[doc(hidden)]
    fn frame(&self) -> Frame<'_>;
}

/// One end of a WebSocket (RFC 6455). Dropping it does not close it: its handler's end does.
pub struct WebSocket {
    line: Rc<Line>,
    protocol: Option<&'static str>,
}

impl WebSocket {
    /// The next message; `None` when one of the two ends has closed. Dropped while it waits, it loses nothing.
    ///
    /// # Errors
    ///
    /// The peer is gone without a word, or does not keep to the protocol.
    pub async fn receive(&mut self) -> Result<Option<Message>, Gone> {
        poll_fn(|task| self.line.poll_message(task)).await
    }

    /// Sends a message behind those sent before; waits while 64 KiB are unsent.
    ///
    /// # Errors
    ///
    /// Nobody reads any more: one of the two ends has closed, or the peer is gone.
    pub async fn send(&mut self, message: impl Say) -> Result<(), Gone> {
        poll_fn(|task| self.line.poll_room(task)).await?;
        self.line.send(&message.frame());
        Ok(())
    }

    /// Closes: nothing can be sent any more, and what the peer has still sent is dropped. The `reason`, for people, is
    /// cut at 123 bytes.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        self.line.close(code, reason);
    }

    /// Why the peer closed, if it did and said so.
    pub fn closed(&self) -> Option<(CloseCode, String)> {
        self.line.farewell()
    }

    /// The subprotocol that was agreed on.
    pub const fn protocol(&self) -> Option<&'static str> {
        self.protocol
    }
}

impl Say for Message {
    fn frame(&self) -> Frame<'_> {
        match self {
            Self::Text(text) => Frame::Text(text),
            Self::Binary(bytes) => Frame::Binary(bytes),
        }
    }
}

impl Say for str {
    fn frame(&self) -> Frame<'_> {
        Frame::Text(self)
    }
}

impl Say for String {
    fn frame(&self) -> Frame<'_> {
        Frame::Text(self)
    }
}

impl Say for [u8] {
    fn frame(&self) -> Frame<'_> {
        Frame::Binary(self)
    }
}

impl Say for Vec<u8> {
    fn frame(&self) -> Frame<'_> {
        Frame::Binary(self)
    }
}

impl<S: Say + ?Sized> Say for &S {
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
