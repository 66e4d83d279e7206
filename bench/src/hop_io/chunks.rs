//! The cost of a long page that is sent in chunks while it is rendered, and of the same page that is
//! rendered into a buffer first.

use anyhow::Result;

use super::{Bench, LONG_PAGE, shown};
use crate::figures::Spread;
use crate::peer::Peer;
use crate::samples::figures;
use crate::wrk::Load;

/// Kept connections of the load.
const CONNECTIONS: u64 = 16;
/// Requests for the measurement of the time to the first byte.
const FIRST_BYTES: usize = 50;
/// Longer than the page, so that it is gathered whole.
const GATHERED: &str = "16m";

const CHOICES: [(&str, &[&str]); 2] =
    [("in chunks", &[]), ("gathered first", &["--chunk-at", GATHERED])];

#[derive(Clone, Copy, Debug)]
struct Sample {
    /// CPU time of a request in microseconds.
    cpu: f64,
    /// The median time to the first byte without other load, in milliseconds.
    first: f64,
    /// The growth of the resident memory, in MiB.
    memory: f64,
}

figures!(Sample { cpu: "cpu_us", first: "first_byte_ms", memory: "memory_mib" });

/// Measures both ways by turns, and prints the table.
pub(super) fn measure(bench: &Bench<'_>) -> Result<()> {
    let mut samples = bench.samples("hop-io-chunks", "page", CHOICES.len())?;
    let mut all: [Vec<Sample>; 2] = Default::default();
    for round in 1..=bench.rounds {
        for ((title, options), own) in CHOICES.iter().zip(&mut all) {
            own.push(samples.take(&[*title], round, || sample(bench, options))?);
        }
    }
    let mut lines = vec![
        format!(
            "A page of 1 MB, on {CONNECTIONS} kept connections of wrk. *In chunks* is the default; gathered: `--chunk-at \
             {GATHERED}`, which sends it with its length.\n"
        ),
        "| page | CPU, us | x in chunks | first byte, ms | memory, MiB |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for ((title, _), samples) in CHOICES.iter().zip(&all) {
        let of = |figure| shown(samples, figure);
        let pairs = samples.iter().zip(&all[0]);
        let ratio = Spread::of(pairs.map(|(own, chunks)| own.cpu / chunks.cpu));
        lines.push(format!(
            "| {title} | {} | {} | {} | {} |",
            of(|sample| sample.cpu),
            ratio.map_or_else(String::new, |ratio| ratio.to_string()),
            of(|sample| sample.first),
            of(|sample| sample.memory)
        ));
    }
    println!("{}\n", lines.join("\n"));
    samples.finish()
}

fn sample(bench: &Bench<'_>, options: &[&str]) -> Result<Sample> {
    let running = bench.start("", options)?;
    let port = running.port;
    // Before the first long page, whose buffer the server may keep.
    let rest = running.memory()?.resident;
    let mut peer = Peer::connect(port)?;
    let mut firsts = Vec::new();
    for _ in 0..FIRST_BYTES {
        peer.get(LONG_PAGE)?;
        firsts.push(peer.first_byte().as_secs_f64() * 1e3);
    }
    drop(peer);
    let (seconds, folder) = (bench.seconds, &*bench.workspace.work);
    let load =
        Load { port, connections: CONNECTIONS, seconds, path: LONG_PAGE, script: None, folder };
    let before = running.cpu()?;
    let report = load.send()?;
    let cpu = running.cpu()? - before;
    let memory = running.peak_memory()?.saturating_sub(rest) as f64 / 1024.0;
    running.stop()?;
    let first = Spread::of(firsts).map_or(0.0, |spread| spread.median);
    Ok(Sample { cpu: 1e6 * cpu / report.requests, first, memory })
}
