//! The hello page and a page of values as a careful hyper user would write it: name decoded and escaped, one thread,
//! TCP_NODELAY.

#[path = "../../values_page.rs"]
mod values_page;

use std::borrow::Cow;
use std::convert::Infallible;
use std::io;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use values_page::values_page;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments
        .next()
        .ok_or_else(|| io::Error::other("usage: bine-bench-hyper HOST:PORT [http2]"))?;
    let is_http2 = arguments.next().is_some_and(|protocol| protocol == "http2");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, accept(address, is_http2))
}

async fn accept(address: String, is_http2: bool) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        let stream = TokioIo::new(stream);
        // An error ends this connection only.
        tokio::task::spawn_local(async move {
            if is_http2 {
                let builder = http2::Builder::new(LocalTasks);
                let _ = builder.serve_connection(stream, service_fn(answer)).await;
            } else {
                let mut builder = http1::Builder::new();
                builder.pipeline_flush(true);
                let _ = builder.serve_connection(stream, service_fn(answer)).await;
            }
        });
    }
}

/// Runs the streams of a connection on its thread.
#[derive(Clone, Copy)]
struct LocalTasks;

impl<F> Executor<F> for LocalTasks
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let page = match request.uri().path() {
        "/hello" => hello(request.uri().query().unwrap_or_default()),
        "/values" => values_page(),
        _ => {
            let mut missing = Response::new(Full::new(Bytes::from_static(b"not found")));
            *missing.status_mut() = StatusCode::NOT_FOUND;
            return Ok(missing);
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(page)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    Ok(response)
}

fn hello(query: &str) -> String {
    let name = parameter(query, "name").unwrap_or_default();
    let mut page = String::with_capacity(64);
    page.push_str("<h1>Hello ");
    escape(&name, &mut page);
    page.push_str("</h1>");
    page
}

/// The value of `name` in a query, decoded; borrowed if no character is encoded.
fn parameter<'query>(query: &'query str, name: &str) -> Option<Cow<'query, str>> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    if !value.contains(['%', '+']) {
        return Some(Cow::Borrowed(value));
    }
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        let hex = |at: usize| tail.get(at).and_then(|&digit| char::from(digit).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                rest = &tail[2..];
            }
            (b'+', ..) => decoded.push(b' '),
            _ => decoded.push(first),
        }
    }
    Some(Cow::Owned(String::from_utf8_lossy(&decoded).into_owned()))
}

fn escape(text: &str, page: &mut String) {
    for character in text.chars() {
        match character {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            other => page.push(other),
        }
    }
}
