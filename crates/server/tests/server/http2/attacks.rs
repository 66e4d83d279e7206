//! The attacks on HTTP/2 that were published since 2019, by clients that write frames themselves.

use std::io::ErrorKind;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::{Client, run, socket};
use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, PRIORITY, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, frame, reason, request,
};
use crate::house::House;
use crate::metrics::metrics;

/// Reasons of RFC 9113, section 7.
const PROTOCOL_ERROR: u32 = 1;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

/// Sends `attack` again and again, and returns the reason of the GOAWAY that ends the connection.
/// `None`: the server has closed it without one that arrived.
async fn attacked(house: &House, mut attack: impl FnMut(u32) -> Vec<u8>) -> Option<u32> {
    let mut socket = socket(house).await;
    socket.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await.unwrap();
    let (mut reading, mut writing) = socket.split();
    let writer = async {
        // More than any budget. A server without a limit makes the test fail by its time limit.
        for number in 0..u32::MAX / 4 {
            if writing.write_all(&attack(number)).await.is_err() {
                break;
            }
        }
    };
    let mut received = Vec::new();
    let reader = async {
        let mut space = vec![0; 64 * 1024];
        loop {
            match reading.read(&mut space).await {
                Ok(0) => break,
                Ok(count) => received.extend_from_slice(&space[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::select! {
        () = writer => {}
        () = reader => {}
    }
    reason(&received)
}

/// Runs the attack beside a client that does nothing wrong.
#[track_caller]
fn check(reasons: &[u32], attack: impl FnMut(u32) -> Vec<u8>) {
    let house = House::open("hybrid");
    run(async {
        let mut other = Client::connect(&house).await;
        assert_eq!(other.ask("/").await, "200 hello");
        // The close of a connection with unread input can destroy the GOAWAY.
        let reason = attacked(&house, attack).await;
        if let Some(reason) = reason {
            assert!(reasons.contains(&reason), "{reason}");
        }
        let expected = match (reasons, reason) {
            ([ENHANCE_YOUR_CALM], _) | (_, Some(ENHANCE_YOUR_CALM)) => 1,
            (_, Some(_)) => 0,
            (_, None) => house.server.metrics().http2_floods,
        };
        metrics(&house.server, |found| found.http2_floods == expected);
        assert_eq!(other.ask("/").await, "200 hello", "on a connection of before");
        assert_eq!(Client::connect(&house).await.ask("/").await, "200 hello");
    });
}

/// CVE-2023-44487.
#[test]
fn closes_a_client_that_opens_and_resets_streams() {
    let block = request("/wait/reset");
    check(&[ENHANCE_YOUR_CALM], |number| {
        let stream = number * 2 + 1;
        let mut frames = frame(HEADERS, END_STREAM | END_HEADERS, stream, &block);
        frames.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
        frames
    });
}

/// CVE-2025-8671: the client makes the server reset its streams.
#[test]
fn closes_a_client_that_makes_the_server_reset_streams() {
    let block = request("/wait/made");
    check(&[ENHANCE_YOUR_CALM, PROTOCOL_ERROR], |number| {
        let stream = number * 2 + 1;
        let mut frames = frame(HEADERS, END_STREAM | END_HEADERS, stream, &block);
        // A window update of zero is an error of the stream (RFC 9113, section 6.9).
        frames.extend(frame(WINDOW_UPDATE, 0, stream, &0_u32.to_be_bytes()));
        frames
    });
}

/// CVE-2024-24549 and others of that year: fields without an end.
#[test]
fn closes_a_client_that_never_ends_its_fields() {
    let piece = [b"\x00\x01x\x7f\x80\x01".as_slice(), &[b'v'; 255]].concat();
    check(&[ENHANCE_YOUR_CALM, PROTOCOL_ERROR, COMPRESSION_ERROR], |number| match number {
        0 => frame(HEADERS, END_STREAM, 1, &request("/")),
        _ => frame(CONTINUATION, 0, 1, &piece),
    });
}

#[test]
fn closes_a_client_that_sends_empty_continuations() {
    check(&[ENHANCE_YOUR_CALM, PROTOCOL_ERROR, COMPRESSION_ERROR], |number| match number {
        0 => frame(HEADERS, END_STREAM, 1, &request("/")),
        _ => frame(CONTINUATION, 0, 1, &[]),
    });
}

/// CVE-2019-9512.
#[test]
fn closes_a_client_that_floods_pings() {
    check(&[ENHANCE_YOUR_CALM], |_| frame(PING, 0, 0, &[0; 8]));
}

/// CVE-2019-9515.
#[test]
fn closes_a_client_that_floods_settings() {
    check(&[ENHANCE_YOUR_CALM], |_| frame(SETTINGS, 0, 0, &[]));
}

/// CVE-2019-9513.
#[test]
fn closes_a_client_that_floods_priorities() {
    check(&[ENHANCE_YOUR_CALM], |_| frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 7]));
}

/// CVE-2019-9518.
#[test]
fn closes_a_client_that_floods_empty_data() {
    check(&[ENHANCE_YOUR_CALM], |number| match number {
        0 => frame(HEADERS, END_HEADERS, 1, &request("/wait/data")),
        _ => frame(DATA, 0, 1, &[]),
    });
}

#[test]
fn closes_a_client_that_floods_window_updates() {
    check(&[ENHANCE_YOUR_CALM, 3], |_| frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()));
}

#[test]
fn closes_a_client_that_floods_unknown_frames() {
    check(&[ENHANCE_YOUR_CALM], |_| frame(0x77, 0, 0, b"unknown"));
}

/// A few bytes that stand for large fields (CVE-2016-6581).
#[test]
fn limits_the_fields_that_a_few_bytes_stand_for() {
    let house = House::open("hybrid");
    run(async {
        let mut socket = socket(&house).await;
        // One field of 4000 bytes enters the table, then is named 4000 times: 16 MB.
        let mut block = request("/");
        block.extend_from_slice(b"\x40\x01x\x7f\xa1\x1e");
        block.extend_from_slice(&[b'v'; 4000]);
        block.extend(std::iter::repeat_n(0xbe, 4000));
        let frames = [
            PREFACE,
            &frame(SETTINGS, 0, 0, &[]),
            &frame(HEADERS, END_STREAM | END_HEADERS, 1, &block),
            &frame(PING, 0, 0, b"the end!"),
        ];
        socket.write_all(&frames.concat()).await.unwrap();
        let mut received = Vec::new();
        while !received.windows(8).any(|bytes| bytes == b"the end!")
            && socket.read_buf(&mut received).await.is_ok_and(|count| count > 0)
        {}
        let is_refused = received.windows(3).any(|three| three == b"431");
        assert!(is_refused || reason(&received).is_some(), "{}", received.escape_ascii());
    });
}
