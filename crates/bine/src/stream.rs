//! Streamed responses: content that is produced while it is sent, such as rows of a query, the
//! output of a child process, or a long page.

use std::borrow::Cow;
use std::future::Future;
use std::io::Read;

use bine_html::{Page, Writer};
use bine_server::{self as server, Disconnected, Stream, blocking};

use crate::error::Error;
use crate::respond::Response;

/// The bytes of one read.
const READ: usize = 64 * 1024;

impl Response {
    /// Streams content of a media type that `write` produces while it is sent. Its length need not
    /// be known.
    ///
    /// `write` gets a [`Sender`], runs concurrently with its connection and must not block. It
    /// waits whenever 64 KiB are unsent, is dropped when the client disconnects, and has the
    /// handler's time limit (`handler-timeout`) from one chunk to the next. If it fails or panics,
    /// the server aborts the connection, so that the client detects that the content is incomplete.
    ///
    /// ```
    /// use bine::{Respond, Response, html, page};
    ///
    /// #[page("/squares")]
    /// async fn squares() -> impl Respond {
    ///     Response::stream("text/html; charset=utf-8", async |mut out| {
    ///         out.send("<!doctype html><title>Squares</title><ol>").await?;
    ///         for number in 1..=100_000_u64 {
    ///             out.page(html!(<li>{number * number}</li>)).await?;
    ///         }
    ///         out.send("</ol>").await?;
    ///         Ok(())
    ///     })
    /// }
    /// # let _ = bine::App::new().page(squares);
    /// ```
    pub fn stream<F>(
        media_type: impl Into<Cow<'static, str>>,
        write: impl FnOnce(Sender) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        Self::streaming(media_type, |pieces| {
            Stream::new(pieces, |sender| {
                let writing = write(Sender { own: sender, page: Vec::new() });
                Box::pin(async move { writing.await.map_err(|error| format!("{error:?}")) })
            })
        })
    }

    /// Streams content of a media type from `reader`, which may block: the output of a program, a
    /// file that is decompressed. Worker threads read it chunk by chunk, as fast as the client
    /// receives it.
    ///
    /// ```
    /// use std::process::{Command, Stdio};
    ///
    /// use bine::{Error, Respond, Response, page};
    ///
    /// #[page("/processes")]
    /// fn processes() -> Result<impl Respond, Error> {
    ///     let program = Command::new("ps").stdout(Stdio::piped()).spawn()?;
    ///     let output = program.stdout.ok_or_else(|| Error::not_found("it says nothing"))?;
    ///     Ok(Response::reader("text/plain; charset=utf-8", output))
    /// }
    /// # let _ = bine::App::new().page(processes);
    /// ```
    pub fn reader(
        media_type: impl Into<Cow<'static, str>>,
        reader: impl Read + Send + 'static,
    ) -> Self {
        Self::stream(media_type, async move |mut out| {
            let (mut reader, mut buffer) = (reader, vec![0; READ]);
            loop {
                let read;
                (reader, buffer, read) = blocking(move || {
                    let read = loop {
                        match reader.read(&mut buffer) {
                            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                            read => break read,
                        }
                    };
                    (reader, buffer, read)
                })
                .await;
                match read? {
                    0 => return Ok(()),
                    count => out.send(&buffer[..count]).await?,
                }
            }
        })
    }
}

/// The output of a [stream](Response::stream).
#[derive(Debug)]
pub struct Sender {
    own: server::Sender,
    /// The buffer for pages, reused.
    page: Vec<u8>,
}

impl Sender {
    /// Appends `content`; waits while 64 KiB are unsent.
    ///
    /// # Errors
    ///
    /// The client has disconnected; the stream should end.
    pub async fn send(&mut self, content: impl AsRef<[u8]>) -> Result<(), Disconnected> {
        self.own.send(content).await
    }

    /// Appends a piece of a page, without the layout.
    ///
    /// # Errors
    ///
    /// The client has disconnected; the stream should end.
    pub async fn page(&mut self, page: impl Page) -> Result<(), Disconnected> {
        self.page.clear();
        page.write(&mut Writer::new(&mut self.page));
        self.own.send(&self.page).await
    }
}
