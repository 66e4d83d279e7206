//! A client that sends the requests of a visitor one by one, to compare what servers answer.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};

use super::PATIENCE;
use super::answer::Answer;
use super::script::Request;
use crate::peer::address;

/// A connection that is opened again when the server has closed it.
pub(crate) struct PageClient {
    port: u16,
    stream: Option<TcpStream>,
}

impl PageClient {
    pub(crate) const fn new(port: u16) -> Self {
        Self { port, stream: None }
    }

    /// Sends a request, and returns the status and the body of the response.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<(u16, Vec<u8>)> {
        let answer = self.exchange(request);
        let is_kept = answer.as_ref().is_ok_and(|answer| !answer.closes);
        if !is_kept {
            self.stream = None;
        }
        let answer = answer.with_context(|| format!("{} {}", request.method, request.path))?;
        Ok((answer.status, answer.body))
    }

    fn exchange(&mut self, request: &Request) -> Result<Answer> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(address(self.port))?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut().context("no connection")?;
        stream.write_all(request.text(&[]).as_bytes())?;
        let (mut answer, mut buffer) = (Answer::default(), [0; 16 << 10]);
        loop {
            let count = stream.read(&mut buffer)?;
            ensure!(count > 0, "the server closed the connection within a response");
            let (taken, is_whole) = answer.receive(&buffer[..count], true)?;
            ensure!(taken == count, "the server sent more than one response");
            if is_whole {
                return Ok(answer);
            }
        }
    }
}
