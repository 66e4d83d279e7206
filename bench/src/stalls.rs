//! Decides whether an answer of some size waits for an acknowledgment that was put off.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::figures::milliseconds;
use crate::machine;
use crate::peer::Peer;
use crate::servers::{Content, Server, free_port};
use crate::tools::{Workshop, leave_core_0};

/// Linux puts an acknowledgment off by 40 ms; a small second segment held back by Nagle waits for
/// it. Five less, for the timer's grain.
const STALL: Duration = Duration::from_millis(35);

const LARGEST: usize = 128 * 1024;

/// Asks for every size many times over one kept connection each.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let offered = [Server::Bine, Server::Nginx];
    let servers = Server::chosen(arguments, &offered, &offered[..1])?;
    let requests = arguments.number("--requests", 200)?;
    let facts = machine::facts();
    let shop = Workshop::open()?;
    for size in sizes() {
        shop.make_file(size)?;
    }
    for server in &servers {
        server.build(&shop, Content::File(1))?;
    }
    leave_core_0()?;
    println!(
        "{facts}\n\n| server | body, bytes | longest, ms | of {requests} at 35 ms or more |\n|---|---|---|---|"
    );
    let mut stalled = 0;
    for server in servers {
        let running = server.start(&shop, Content::File(1), free_port()?)?;
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

/// Powers of two, which meet every buffer's edge, and their neighbors.
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

/// The longest of `requests` answers, and how many stalled.
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
    fn sizes_go_from_one_byte_to_128_kib_without_repeating() {
        let sizes = sizes();
        assert_eq!((sizes[0], sizes.last().copied()), (1, Some(LARGEST)));
        assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
