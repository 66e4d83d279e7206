//! Checks that no response waits for a delayed acknowledgment, whatever its size.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::figures::milliseconds;
use crate::machine;
use crate::peer::Peer;
use crate::servers::{Content, Server, free_port};
use crate::tools::{Workspace, move_to_core_1};

/// Linux delays acknowledgments by 40 ms; a small second segment held back by Nagle's algorithm
/// waits for it. Five less, for the timer's resolution.
const STALL: Duration = Duration::from_millis(35);

const LARGEST: usize = 128 * 1024;

/// Requests every size repeatedly, over one kept connection per size.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let offered = [Server::Bine, Server::Nginx];
    let servers = Server::chosen(arguments, &offered, &offered[..1])?;
    let requests = arguments.number("--requests", 200)?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    for size in sizes() {
        workspace.make_file(size)?;
    }
    for server in &servers {
        server.build(&workspace, Content::File(1))?;
    }
    move_to_core_1()?;
    println!(
        "{facts}\n\n| server | body, bytes | longest, ms | of {requests} at 35 ms or more |\n|---|---|---|---|"
    );
    let mut stalled = 0;
    for server in servers {
        let running = server.start(&workspace, Content::File(1), free_port()?)?;
        for size in sizes() {
            let (longest, stalls) = ask(running.port, size, requests)?;
            println!("| {} | {size} | {} | {stalls} |", server.name(), milliseconds(longest));
            stalled += usize::from(stalls > 0);
        }
        running.stop()?;
    }
    ensure!(stalled == 0, "{stalled} sizes stalled");
    Ok(())
}

/// Powers of two, which cover the edges of all buffers, and their neighbors.
fn sizes() -> Vec<usize> {
    let powers = (0..=LARGEST.ilog2()).map(|power| 1_usize << power);
    let mut sizes: Vec<usize> = powers
        .flat_map(|size| [size - 1, size, size + 1])
        .filter(|size| (1..=LARGEST).contains(size))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The longest time of `requests` responses, and the number of stalls.
fn ask(port: u16, size: usize, requests: u64) -> Result<(Duration, u64)> {
    let path = Content::File(size).path();
    let mut peer = Peer::connect(port)?;
    let (mut longest, mut stalls) = (Duration::ZERO, 0);
    for _ in 0..requests {
        let begun = Instant::now();
        peer.get(&path)?;
        let time = begun.elapsed();
        longest = longest.max(time);
        stalls += u64::from(time >= STALL);
    }
    Ok((longest, stalls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_distinct_sizes_from_one_byte_to_128_kib() {
        let sizes = sizes();
        assert_eq!((sizes[0], sizes.last().copied()), (1, Some(LARGEST)));
        assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
