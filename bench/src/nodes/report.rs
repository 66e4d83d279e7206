//! Writes the report: figures 12 and 13 of Liu and Cui, CPU time and memory.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::figures::{Spread, percent, short};
use crate::nodes::plan::Distribution;
use crate::nodes::record::{NodesFigure, NodesRecord};
use crate::plot::{Axis, Line, Plot, thousands};

const MIB: f64 = 1_048_576.0;
/// The goal: a p99 across nodes of at most this many times that of one node, and this many
/// milliseconds more.
const MOST_RATIO: f64 = 1.5;
const MOST_EXTRA: f64 = 5.0;

/// The figures that a plot shows: file name, title, caption, and value.
struct Chart {
    file: &'static str,
    title: &'static str,
    caption: &'static str,
    value: fn(&NodesRecord) -> f64,
}

const CHARTS: [Chart; 3] = [
    Chart {
        file: "figure-12",
        title: "Figure 12: mean publish trip time",
        caption: "mean trip, ms",
        value: |record| record.figure(NodesFigure::Mean) / 1e3,
    },
    Chart {
        file: "figure-12-p99",
        title: "Figure 12, p99 of the trips",
        caption: "p99 of the trips, ms",
        value: p99,
    },
    Chart {
        file: "figure-13",
        title: "Figure 13: received messages",
        caption: "received, %",
        value: NodesRecord::received,
    },
];

/// Writes `nodes.md` and its plots into `folder`; returns its text.
pub(crate) fn write(records: &[NodesRecord], machine: &str, folder: &Path) -> Result<String> {
    let report = Report::of(records);
    let mut text = format!("{machine}\n\n");
    report.trips(&mut text)?;
    report.costs(&mut text)?;
    report.memory(&mut text)?;
    for (file, plot_title, svg) in report.plots() {
        write!(text, "\n![{plot_title}]({file})\n")?;
        fs::write(folder.join(file), svg)?;
    }
    fs::write(folder.join("nodes.md"), &text)?;
    Ok(text)
}

/// The records of a run.
struct Report<'r> {
    records: &'r [NodesRecord],
    distributions: BTreeSet<Distribution>,
    peers: BTreeSet<u64>,
    nodes: BTreeSet<u64>,
}

impl<'r> Report<'r> {
    fn of(records: &'r [NodesRecord]) -> Self {
        let points = || records.iter().map(|record| &record.point);
        Self {
            records,
            distributions: points().map(|point| point.distribution).collect(),
            peers: points().map(|point| point.peers).collect(),
            nodes: points().map(|point| point.nodes).collect(),
        }
    }

    fn trips(&self, text: &mut String) -> Result<()> {
        *text += "Publish trip times in milliseconds. A message of 200 bytes goes to all peers, every half a \
             second and less often for many peers; medians of all rounds. `of one node` is the p99 divided by \
             that of one node with the same distribution in the same round. The goal is at most 1.5 times, \
             and 5 ms more.\n\n\
             | peers | distribution | nodes | received, % | mean | p50 | p99 | p99.9 | p99, of one node | goal |\n\
             |---|---|---|---|---|---|---|---|---|---|\n";
        self.for_each(|peers, distribution, nodes, records| {
            let of = |figure| short(median(records, |record| record.figure(figure) / 1e3));
            let pairs = self.pairs(records);
            let ratio = Spread::of(pairs.iter().map(|(own, one)| own / one));
            // In each round, so that the load of the machine is the same for both.
            let excess = Spread::of(pairs.iter().map(|(own, one)| own - one * MOST_RATIO));
            let (ratio, goal) = match (ratio, excess) {
                (Some(ratio), Some(excess)) if nodes > 1 => {
                    let is_met = excess.median <= MOST_EXTRA;
                    (format!("{:.2}", ratio.median), if is_met { "met" } else { "missed" })
                }
                _ => ("-".to_owned(), "-"),
            };
            writeln!(
                text,
                "| {} | {} | {nodes} | {} | {} | {} | {} | {} | {ratio} | {goal} |",
                thousands(peers as f64),
                distribution.title(),
                percent(median(records, NodesRecord::received)),
                of(NodesFigure::Mean),
                of(NodesFigure::P50),
                of(NodesFigure::P99),
                of(NodesFigure::P999),
            )?;
            Ok(())
        })
    }

    fn costs(&self, text: &mut String) -> Result<()> {
        *text += "\nCPU time in microseconds: of all nodes and of HAProxy, for one delivery to one peer. That of NATS \
             is a share of the time, because it includes the heartbeats of idle nodes.\n\n\
             | peers | distribution | nodes | all nodes | HAProxy | NATS, % of a core |\n|---|---|---|---|---|---|\n";
        self.for_each(|peers, distribution, nodes, records| {
            let a_delivery = |figure| {
                short(median(records, |record| {
                    record.figure(figure) / record.figure(NodesFigure::Received)
                }))
            };
            let nats = median(records, |record| {
                100.0 * record.figure(NodesFigure::NatsCpu) / record.figure(NodesFigure::Took)
            });
            let nats =
                if distribution == Distribution::Unicast { "-".to_owned() } else { short(nats) };
            writeln!(
                text,
                "| {} | {} | {nodes} | {} | {} | {nats} |",
                thousands(peers as f64),
                distribution.title(),
                a_delivery(NodesFigure::Cpu),
                a_delivery(NodesFigure::BalancerCpu),
            )?;
            Ok(())
        })
    }

    fn memory(&self, text: &mut String) -> Result<()> {
        *text += "\nMemory in MiB, for each node: user memory without peers and with its share of them, and \
             resident memory, which includes pages of files. The last column is the user memory beyond that of a \
             single server without a cluster, with the same peers; the goal is at most 8 MB.\n\n\
             | peers | distribution | nodes | user, no peers | user | resident, no peers | resident | NATS | HAProxy, all \
             processes | beyond a single server, no peers | with peers |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n";
        self.for_each(|peers, distribution, nodes, records| {
            let each = |figure| {
                median(records, |record| record.figure(figure) / record.point.nodes as f64 / MIB)
            };
            let all = |figure| median(records, |record| record.figure(figure) / MIB);
            let single = self.at(peers, Distribution::Unicast, 1);
            let beyond = |figure| {
                if single.is_empty() || nodes > 1 || distribution == Distribution::Unicast {
                    return "-".to_owned();
                }
                short(all(figure) - median(&single, |record| record.figure(figure) / MIB))
            };
            let nats = match distribution {
                Distribution::Unicast => "-".to_owned(),
                Distribution::Stream | Distribution::StreamTcp => {
                    short(all(NodesFigure::NatsMemory))
                }
            };
            writeln!(
                text,
                "| {} | {} | {nodes} | {} | {} | {} | {} | {nats} | {} | {} | {} |",
                thousands(peers as f64),
                distribution.title(),
                short(each(NodesFigure::Before)),
                short(each(NodesFigure::Parked)),
                short(each(NodesFigure::ResidentBefore)),
                short(each(NodesFigure::Resident)),
                short(all(NodesFigure::BalancerMemory)),
                beyond(NodesFigure::Before),
                beyond(NodesFigure::Parked),
            )?;
            Ok(())
        })
    }

    /// The plots of each distribution, with the same axes for all.
    fn plots(&self) -> Vec<(String, String, String)> {
        let peers: Vec<f64> = self.peers.iter().map(|peers| *peers as f64).collect();
        let mut plots = Vec::new();
        for Chart { file, title, caption, value } in CHARTS {
            for &distribution in &self.distributions {
                let title = format!("{title}, {}", distribution.title());
                let y_axis = if file == "figure-13" {
                    Axis::linear(caption, 100.0)
                } else {
                    Axis::logarithmic(caption, self.records.iter().map(value))
                };
                let x_axis = Axis::at("waiting peers", &peers, true);
                let lines = self.lines(distribution, value);
                let plot = Plot { title: &title, x_axis, y_axis, lines };
                let svg = plot.svg();
                plots.push((format!("{file}-{}.svg", distribution.name()), title, svg));
            }
        }
        plots
    }

    /// A line for each number of nodes.
    fn lines(&self, distribution: Distribution, value: fn(&NodesRecord) -> f64) -> Vec<Line> {
        let line = |(kind, nodes): (usize, &u64)| {
            let point = |peers: &u64| {
                let records = self.at(*peers, distribution, *nodes);
                (!records.is_empty()).then(|| (*peers as f64, median(&records, value)))
            };
            let name = if *nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
            let values = self.peers.iter().filter_map(point).collect();
            Line { name, kind, values, brackets: Vec::new() }
        };
        self.nodes.iter().enumerate().map(line).collect()
    }

    /// The p99 of each record, with that of one node in the same round.
    fn pairs(&self, records: &[&NodesRecord]) -> Vec<(f64, f64)> {
        let pair = |record: &&NodesRecord| {
            let point = &record.point;
            let all = self.at(point.peers, point.distribution, 1);
            let one = all.into_iter().find(|one| one.point.round == point.round)?;
            Some((p99(record), p99(one)))
        };
        records.iter().filter_map(pair).collect()
    }

    fn for_each(
        &self,
        mut row: impl FnMut(u64, Distribution, u64, &[&NodesRecord]) -> Result<()>,
    ) -> Result<()> {
        for &peers in &self.peers {
            for &distribution in &self.distributions {
                for &nodes in &self.nodes {
                    let records = self.at(peers, distribution, nodes);
                    if !records.is_empty() {
                        row(peers, distribution, nodes, &records)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn at(&self, peers: u64, distribution: Distribution, nodes: u64) -> Vec<&'r NodesRecord> {
        let selected = |record: &&NodesRecord| {
            let point = &record.point;
            point.peers == peers && point.distribution == distribution && point.nodes == nodes
        };
        self.records.iter().filter(selected).collect()
    }
}

fn p99(record: &NodesRecord) -> f64 {
    record.figure(NodesFigure::P99) / 1e3
}

/// Zero without records.
fn median(records: &[&NodesRecord], value: impl Fn(&NodesRecord) -> f64) -> f64 {
    Spread::of(records.iter().map(|record| value(record))).map_or(0.0, |spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `user`: user memory of all nodes with all peers waiting, in MiB.
    fn record(point: &str, received: u32, p99: u32, user: u32) -> NodesRecord {
        let parked = user << 20;
        let words = format!(
            "due=10000 received={received} repeated=0 mean=5000 p50=4000 p99={p99} p999=9000 cpu=70000 before=1048576 \
             parked={parked} resident_before=2097152 resident=4194304 cpu1=500 parked1=3145728 cpu2=90000 parked2=1048576 took=10000"
        );
        NodesRecord::of(point.parse().unwrap(), &words).unwrap()
    }

    fn row<'t>(text: &'t str, start: &str) -> &'t str {
        text.lines().find(|line| line.starts_with(start)).unwrap()
    }

    #[test]
    fn compares_p99_with_one_node_of_the_same_round() {
        let records = [
            record("stream,1,500,500,5,1", 10_000, 8000, 1),
            record("stream,1,500,500,5,2", 10_000, 20_000, 1),
            record("stream,2,500,500,5,1", 10_000, 16_000, 1),
            record("stream,2,500,500,5,2", 10_000, 40_000, 1),
            record("stream,4,500,500,5,1", 9999, 24_000, 1),
            record("stream,4,500,500,5,2", 9999, 30_000, 1),
        ];
        let mut text = String::new();
        Report::of(&records).trips(&mut text).unwrap();
        let start = "| 500 | stream, HTTP balancer |";
        let end = "| 100 | 5.00 | 4.00 | 14.0 | 9.00 | - | - |";
        assert_eq!(row(&text, &format!("{start} 1")), format!("{start} 1 {end}"));
        let end = "| 100 | 5.00 | 4.00 | 28.0 | 9.00 | 2.00 | missed |";
        assert_eq!(row(&text, &format!("{start} 2")), format!("{start} 2 {end}"));
        let end = "| 99.990 | 5.00 | 4.00 | 27.0 | 9.00 | 2.25 | missed |";
        assert_eq!(row(&text, &format!("{start} 4")), format!("{start} 4 {end}"));
    }

    #[test]
    fn compares_memory_with_a_single_server() {
        let records = [
            record("unicast,1,500,500,5,1", 10_000, 8000, 4),
            record("stream,1,500,500,5,1", 10_000, 8000, 7),
            record("stream,2,500,500,5,1", 10_000, 8000, 7),
        ];
        let mut text = String::new();
        Report::of(&records).memory(&mut text).unwrap();
        let one = row(&text, "| 500 | stream, HTTP balancer | 1 |");
        assert!(
            one.ends_with("| 1.00 | 7.00 | 2.00 | 4.00 | 3.00 | 1.00 | 0.00 | 3.00 |"),
            "{one}"
        );
        let two = row(&text, "| 500 | stream, HTTP balancer | 2 |");
        assert!(two.ends_with("| 0.50 | 3.50 | 1.00 | 2.00 | 3.00 | 1.00 | - | - |"), "{two}");
    }

    #[test]
    fn draws_a_line_for_each_number_of_nodes() {
        let records = [
            record("stream,1,500,500,5,1", 10_000, 8000, 1),
            record("stream,4,500,500,5,1", 10_000, 9000, 1),
            record("unicast,4,1000,500,5,1", 10_000, 9000, 1),
        ];
        let plots = Report::of(&records).plots();
        assert_eq!(plots.len(), 3 * 2);
        let (file, title, svg) = &plots[0];
        assert_eq!(file, "figure-12-stream.svg");
        assert_eq!(title, "Figure 12: mean publish trip time, stream, HTTP balancer");
        assert!(svg.contains(">1 node<") && svg.contains(">4 nodes<"), "{svg}");
    }
}
