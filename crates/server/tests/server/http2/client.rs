//! A client of HTTP/2.

use std::future::{Future, poll_fn};

use bytes::Bytes;
use h2::client::{Connection, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use bine_server::Address;

use crate::PATIENCE;
use crate::house::House;

/// An open connection. Its task drives it, and ends with the error that ends the connection.
pub(super) struct Client {
    pub(super) send: SendRequest<Bytes>,
    pub(super) connection: JoinHandle<Result<(), h2::Error>>,
}

/// Runs a test with a time limit.
#[track_caller]
pub(super) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(PATIENCE, test).await };
    runtime.block_on(limited).expect("the test takes too long")
}

pub(super) async fn socket(house: &House) -> TcpStream {
    let Address::Tcp(address) = house.address() else { unreachable!() };
    TcpStream::connect(address).await.unwrap()
}

impl Client {
    pub(super) async fn connect(house: &House) -> Self {
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(1 << 20).initial_connection_window_size(4 << 20);
        Self::over(builder, house).await
    }

    pub(super) async fn over(builder: h2::client::Builder, house: &House) -> Self {
        let (send, connection): (_, Connection<_, Bytes>) =
            builder.handshake(socket(house).await).await.unwrap();
        Self { send, connection: tokio::spawn(connection) }
    }

    /// Sends a request. Its body follows on the stream, if there is one.
    pub(super) async fn begin(
        &mut self,
        request: Request<()>,
        has_body: bool,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        poll_fn(|task| self.send.poll_ready(task)).await.unwrap();
        self.send.send_request(request, !has_body).unwrap()
    }

    pub(super) async fn request(&mut self, request: Request<()>) -> Result<Reply, h2::Error> {
        self.begin(request, false).await.0.await.map(Reply)
    }

    pub(super) async fn get(&mut self, path: &str) -> Result<Reply, h2::Error> {
        self.request(get(path)).await
    }

    /// The status and the content of the response.
    pub(super) async fn ask(&mut self, path: &str) -> String {
        self.get(path).await.unwrap().text().await
    }
}

pub(super) fn get(path: &str) -> Request<()> {
    Request::get(format!("http://localhost{path}")).body(()).unwrap()
}

/// A response whose content has not been read.
pub(super) struct Reply(pub(super) Response<RecvStream>);

impl Reply {
    /// The status and the content.
    pub(super) async fn text(self) -> String {
        let status = self.0.status().as_u16();
        let content = self.content().await.unwrap();
        let shown = if content.len() > 100 {
            format!("<{}>", content.len())
        } else {
            String::from_utf8(content).unwrap()
        };
        format!("{status} {shown}")
    }

    pub(super) async fn content(self) -> Result<Vec<u8>, h2::Error> {
        let mut body = self.0.into_body();
        let mut content = Vec::new();
        while let Some(piece) = next(&mut body).await {
            content.extend_from_slice(&piece?);
        }
        Ok(content)
    }
}

/// The next piece of content.
pub(super) async fn next(body: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
    let piece = body.data().await?;
    Some(piece.inspect(|piece| body.flow_control().release_capacity(piece.len()).unwrap()))
}
