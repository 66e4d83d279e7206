//! Measures whether the number of worker threads needs a choice (Carrera et al., "A hybrid web server
//! architecture for e-commerce", section 7): fixed numbers, and the default, for pages that wait long
//! and for pages that wait little.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::auction::Auction;
use crate::figures::Spread;
use crate::machine;
use crate::plot::thousands;
use crate::samples::{Run, Samples, figures};
use crate::servers::{Running, free_port};
use crate::tools::{Workspace, move_to_core_1, output, require};

pub(crate) const OPTIONS: [&str; 6] =
    ["--pages", "--workers", "--connections", "--rounds", "--seconds", "--into"];

/// A page of the auction that a worker renders: it waits, then it hashes.
#[derive(Clone, Copy)]
struct Pages {
    name: &'static str,
    delay: u64,
    hashes: u64,
}

const PAGES: [Pages; 2] = [
    Pages { name: "long", delay: 40, hashes: 250 },
    Pages { name: "short", delay: 5, hashes: 1000 },
];
const PATH: &str = "/categories";
const NUMBERS: [u64; 6] = [10, 16, 32, 64, 128, 256];
/// The time in which the default number grows, before a sample.
const WARM_UP: u64 = 4;

/// The samples of one number of workers; `None` is the default of the server.
struct Cell {
    workers: Option<u64>,
    pages: Pages,
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// Responses with a page, and refusals, per second.
    pages: f64,
    refused: f64,
    /// The part of the core that the server used, in percent.
    core: f64,
    /// CPU time of a response in microseconds.
    cpu: f64,
}

figures!(Sample { pages: "pages", refused: "refused", core: "core_percent", cpu: "cpu_us" });

/// Samples each number of workers once per round, and prints a table for each kind of pages.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    require("wrk", "wrk")?;
    let (rounds, seconds) = (arguments.number("--rounds", 3)?, arguments.number("--seconds", 5)?);
    let connections = arguments.number("--connections", 256)?;
    let numbers = arguments.numbers("--workers", &NUMBERS)?;
    let pages = chosen(arguments.names("--pages"))?;
    let workspace = Workspace::open()?;
    workspace.build_bine(&["--example", "auction"].map(OsStr::new))?;
    let facts = machine::facts();
    move_to_core_1()?;
    let choices = || numbers.iter().copied().map(Some).chain([None]);
    let mut cells: Vec<Cell> = pages
        .iter()
        .flat_map(|pages| choices().map(|workers| (workers, *pages)))
        .map(|(workers, pages)| Cell { workers, pages, samples: Vec::new() })
        .collect();
    let run = Run { arguments, workspace: &workspace, facts: &facts };
    let count = cells.len() * rounds as usize;
    let mut samples = Samples::open("workers", "pages,workers", &run, count)?;
    for round in 1..=rounds {
        for cell in &mut cells {
            let sample = samples.take(&[cell.pages.name, &cell.title()], round, || {
                cell.measure(&workspace, connections, seconds)
            })?;
            cell.samples.push(sample);
        }
    }
    println!("{facts}");
    for pages in pages {
        let own: Vec<&Cell> = cells.iter().filter(|cell| cell.pages.name == pages.name).collect();
        println!(
            "\nPages that wait for {} ms and hash {} KB:\n\n{}",
            pages.delay,
            pages.hashes,
            table(&own)
        );
    }
    println!(
        "Medians (least-most) of {rounds} rounds of {seconds} s, after {WARM_UP} s of the same load: {connections} kept \
         connections of wrk on core 1, the auction with `--scheduler hybrid --admission off` on core 0. `x best` is the \
         median of the ratios of one round to the best fixed number."
    );
    samples.finish()
}

fn chosen(names: Option<Vec<&str>>) -> Result<Vec<Pages>> {
    let Some(names) = names else { return Ok(PAGES.to_vec()) };
    let all = PAGES.map(|pages| pages.name).join(", ");
    let named = |name| PAGES.into_iter().find(|pages| pages.name == name);
    names
        .into_iter()
        .map(|name| named(name).with_context(|| format!("`{name}` is none of {all}")))
        .collect()
}

impl Cell {
    fn title(&self) -> String {
        self.workers.map_or_else(|| "default".to_owned(), |workers| workers.to_string())
    }

    fn measure(&self, workspace: &Workspace, connections: u64, seconds: u64) -> Result<Sample> {
        let port = free_port()?;
        let Pages { delay, hashes, .. } = self.pages;
        let mut words = Auction { scale: 0.01, delay, hashes }.bine(workspace, port);
        words.extend(["--scheduler", "hybrid", "--admission", "off"].map(ToOwned::to_owned));
        if let Some(workers) = self.workers {
            words.extend(["--workers".to_owned(), workers.to_string()]);
        }
        let log = workspace.work.join(format!("workers-{}.log", self.title()));
        let running = Running::start(&words, port, PATH, &log)?;
        let load = |seconds: u64| {
            let url = format!("http://127.0.0.1:{port}{PATH}");
            let options = [format!("-c{connections}"), format!("-d{seconds}s")];
            output(Command::new("wrk").args(["-t1", "--timeout", "30s"]).args(options).arg(url))
        };
        load(WARM_UP)?;
        let before = running.cpu()?;
        let text = load(seconds)?;
        let used = running.cpu()? - before;
        running.stop()?;
        parsed(&text, used)
    }

    fn spread(&self, figure: fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.samples.iter().map(figure))
    }
}

/// Reads what wrk prints. `used`: CPU seconds of the server meanwhile.
fn parsed(text: &str, used: f64) -> Result<Sample> {
    let number = |text: &str| text.split_whitespace().next_back()?.parse::<f64>().ok();
    let line = text.lines().find_map(|line| line.trim().split_once(" requests in "));
    let (answered, rest) = line.with_context(|| format!("wrk printed {text}"))?;
    let answered: f64 = answered.parse()?;
    let seconds = rest.split_once("s,").and_then(|(seconds, _)| seconds.parse::<f64>().ok());
    let seconds = seconds.with_context(|| format!("wrk printed no time in seconds: {text}"))?;
    let refused = text.lines().find(|line| line.contains("Non-2xx")).and_then(number);
    let refused = refused.unwrap_or(0.0);
    let errors = text.lines().find(|line| line.contains("Socket errors"));
    ensure!(errors.is_none(), "{}", errors.unwrap_or_default().trim());
    ensure!(answered > refused, "no page was served: {text}");
    Ok(Sample {
        pages: (answered - refused) / seconds,
        refused: refused / seconds,
        core: 100.0 * used / seconds,
        cpu: 1e6 * used / answered,
    })
}

fn table(cells: &[&Cell]) -> String {
    let rounds = cells.first().map_or(0, |cell| cell.samples.len());
    let best: Vec<f64> = (0..rounds)
        .map(|round| {
            let fixed = cells.iter().filter(|cell| cell.workers.is_some());
            fixed.map(|cell| cell.samples[round].pages).fold(0.0, f64::max)
        })
        .collect();
    let mut lines = vec![
        String::from("| workers | pages/s | x best | refused/s | core, % | CPU, us |"),
        String::from("|---|---|---|---|---|---|"),
    ];
    for cell in cells {
        let ratios = cell.samples.iter().zip(&best);
        let ratio = Spread::of(ratios.map(|(sample, best)| sample.pages / best));
        let median = |figure| cell.spread(figure).map_or(0.0, |spread| spread.median);
        let pages = cell.spread(|sample| sample.pages);
        lines.push(format!(
            "| {} | {} | {} | {:.0} | {:.0} | {:.0} |",
            cell.title(),
            pages.map_or_else(String::new, |pages| format!(
                "{} ({}-{})",
                thousands(pages.median),
                thousands(pages.least),
                thousands(pages.most)
            )),
            ratio.map_or_else(String::new, |ratio| ratio.to_string()),
            median(|sample| sample.refused),
            median(|sample| sample.core),
            median(|sample| sample.cpu),
        ));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_report_of_wrk_with_refused_requests() {
        let text = "  1200 requests in 4.00s, 1.00MB read\n  Non-2xx or 3xx responses: 200\n";
        let expected = Sample { pages: 250.0, refused: 50.0, core: 75.0, cpu: 2500.0 };
        assert_eq!(parsed(text, 3.0).unwrap(), expected);
        let faulty = format!("{text}  Socket errors: connect 0, read 0, write 0, timeout 7\n");
        assert!(parsed(&faulty, 3.0).unwrap_err().to_string().contains("timeout 7"));
        for text in ["", "  200 requests in 4.00s, 1KB\n  Non-2xx or 3xx responses: 200\n"] {
            assert!(parsed(text, 3.0).is_err(), "{text}");
        }
    }

    #[test]
    fn compares_with_the_best_fixed_number_of_the_same_round() {
        let sample = |pages| Sample { pages, refused: 0.0, core: 90.0, cpu: 100.0 };
        let cell = |workers, pages: [f64; 2]| Cell {
            workers,
            pages: PAGES[0],
            samples: pages.map(sample).to_vec(),
        };
        let cells = [
            cell(Some(10), [100.0, 400.0]),
            cell(Some(20), [200.0, 200.0]),
            cell(None, [100.0, 200.0]),
        ];
        let text = table(&cells.iter().collect::<Vec<_>>());
        let last = text.lines().last().unwrap();
        assert_eq!(last, "| default | 150 (100-200) | 0.50 (0.50-0.50) | 0 | 90 | 100 |");
    }

    #[test]
    fn finds_pages_by_name() {
        assert_eq!(chosen(None).unwrap().len(), PAGES.len());
        assert_eq!(chosen(Some(vec!["short"])).unwrap()[0].delay, 5);
        assert!(chosen(Some(vec!["x"])).err().unwrap().to_string().contains("long, short"));
    }
}
