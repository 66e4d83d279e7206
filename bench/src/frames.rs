//! Measures the time to read and write WebSocket frames.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use bine_http::websocket::{Frame, FrameEvent, FrameReader, MessageLimits, mask};

use crate::arguments::Arguments;
use crate::figures::Spread;

/// The minimum number of bytes per sample, large enough to make the clock's overhead negligible.
const IN_A_SAMPLE: usize = 64 << 20;

/// The bytes in the buffer at once, as after one read of a busy connection.
const AT_ONCE: usize = 64 << 10;

/// The cost of masking does not depend on the key, and with this one a masked text is unchanged for
/// the next round.
const KEY: [u8; 4] = [0; 4];

/// Prints the time per frame and the payload rate, by kind and length.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let samples = arguments.number("--samples", 21)?;
    println!("| frames | ns each: median (least-most) | GB/s |\n|---|---|---|");
    let letters = "hops and vines ".repeat(5000);
    for length in [64, 1024, 60_000] {
        let text = Frame::Text(&letters[..length]);
        let binary = Frame::Binary(&letters.as_bytes()[..length]);
        ensure!(read(&mut masked(text)) > AT_ONCE / (length + 14), "a frame was not parsed");
        for (kind, frame) in [("text", text), ("binary", binary)] {
            let mut frames = masked(frame);
            print(&format!("{kind} of {length} bytes, read"), samples, length, || {
                read(&mut frames)
            });
        }
        let mut out = Vec::with_capacity(2 * AT_ONCE);
        print(&format!("binary of {length} bytes, written"), samples, length, || {
            out.clear();
            let mut frames = 0;
            while out.len() < AT_ONCE {
                black_box(binary).append(&mut out);
                frames += 1;
            }
            frames
        });
    }
    let mut bytes = letters.clone().into_bytes();
    let length = bytes.len();
    print("the mask alone, of 75000 bytes", samples, length, || {
        mask(black_box(&mut bytes), black_box(KEY));
        1
    });
    print("a copy alone, of 75000 bytes", samples, length, || {
        bytes.copy_from_slice(black_box(letters.as_bytes()));
        black_box(&mut bytes);
        1
    });
    Ok(())
}

/// A buffer full of masked frames.
fn masked(frame: Frame<'_>) -> Vec<u8> {
    let mut frames = Vec::with_capacity(2 * AT_ONCE);
    while frames.len() < AT_ONCE {
        frame.append_masked(&mut frames, KEY);
    }
    frames
}

/// Reads all frames in the buffer; returns their number.
fn read(bytes: &mut [u8]) -> usize {
    let mut reader = FrameReader::server();
    let limits = MessageLimits::default();
    let mut gathered = Vec::new();
    let (mut consumed, mut frames) = (0, 0);
    loop {
        let step = reader.receive(black_box(&mut bytes[consumed..]), &mut gathered, &limits);
        consumed += step.consumed;
        match black_box(step.event) {
            FrameEvent::Frame(_) => frames += 1,
            FrameEvent::More | FrameEvent::Fault(_) => return frames,
        }
    }
}

/// Times `work`, which handles frames of this length and returns their number.
fn print(title: &str, samples: u64, length: usize, mut work: impl FnMut() -> usize) {
    let mut sample = || {
        let begin = Instant::now();
        let mut frames = 0;
        while frames * length < IN_A_SAMPLE {
            frames += work();
        }
        begin.elapsed().as_secs_f64() * 1e9 / frames as f64
    };
    // The first sample is a warm-up.
    sample();
    if let Some(spread) = Spread::of((0..samples).map(|_| sample())) {
        println!("| {title} | {spread} | {:.1} |", length as f64 / spread.median);
    }
}
