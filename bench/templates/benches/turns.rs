//! Compares engines on a shared machine: in turns, with thousands of short samples each. Reports
//! the first quartile of the samples. A disturbance of single samples does not affect the quartile,
//! and a slow hour affects all engines equally.

use std::hint::black_box;
use std::time::Instant;

use ::sailfish::runtime::Buffer;
use bine_bench_templates::{
    askama, bine, compare, hypertext, league, markup, maud, rows, sailfish, write,
};

const TURNS: usize = 2000;

struct Engine<'d> {
    name: &'static str,
    write: Box<dyn FnMut() + 'd>,
    samples: Vec<f64>,
}

/// An engine that returns a new string.
fn fresh<'d>(name: &'static str, write: impl Fn() -> String + 'd) -> Engine<'d> {
    let write = move || {
        black_box(write());
    };
    Engine { name, write: Box::new(write), samples: Vec::new() }
}

/// An engine that appends to its own kind of buffer, cleared and with enough capacity.
fn reused<'d, B: 'd>(
    name: &'static str,
    mut out: B,
    clear: fn(&mut B),
    write: impl Fn(&mut B) + 'd,
) -> Engine<'d> {
    let write = move || {
        clear(&mut out);
        write(black_box(&mut out));
    };
    Engine { name, write: Box::new(write), samples: Vec::new() }
}

/// Prints the time of a page for each engine, and its ratio to the first engine.
fn race(page: &str, times: u32, mut engines: Vec<Engine<'_>>) {
    for _ in 0..TURNS {
        for engine in &mut engines {
            let began = Instant::now();
            (0..times).for_each(|_| (engine.write)());
            engine.samples.push(began.elapsed().as_nanos() as f64 / f64::from(times));
        }
    }
    let mut unit = None;
    for engine in &mut engines {
        engine.samples.sort_by(f64::total_cmp);
        let (least, quarter) = (engine.samples[0], engine.samples[TURNS / 4]);
        let unit = *unit.get_or_insert(quarter);
        println!(
            "| {page} | {} | {least:.1} | {quarter:.1} | {:.2} |",
            engine.name,
            quarter / unit
        );
    }
}

fn main() {
    compare();
    let (rows, league) = (rows(), league());
    let (rows, league) = (black_box(&*rows), black_box(&league));
    println!(
        "| page, in turns | engine | least, ns | first quarter, ns | x sailfish |\n|---|---|---|---|---|"
    );
    macro_rules! race {
        ($page:ident, $page_to:ident, $data:ident, $times:literal) => {
            race(
                concat!(stringify!($page), ", fresh"),
                $times,
                vec![
                    fresh("sailfish", || sailfish::$page($data)),
                    reused(
                        "bine",
                        Vec::new(),
                        |out| *out = Vec::new(),
                        |out| bine::$page($data, out),
                    ),
                    fresh("maud", || maud::$page($data)),
                    fresh("hypertext", || hypertext::$page($data)),
                    fresh("markup", || markup::$page($data)),
                    fresh("askama", || askama::$page($data)),
                ],
            );
            race(
                concat!(stringify!($page), ", reused"),
                $times,
                vec![
                    reused("sailfish", Buffer::new(), Buffer::clear, |out| {
                        sailfish::$page_to($data, out)
                    }),
                    reused("bine", Vec::new(), Vec::clear, |out| bine::$page($data, out)),
                    reused("hypertext", String::new(), String::clear, |out| {
                        hypertext::$page_to($data, out)
                    }),
                    reused("markup", String::new(), String::clear, |out| {
                        markup::$page_to($data, out)
                    }),
                    reused("askama", String::new(), String::clear, |out| {
                        askama::$page_to($data, out)
                    }),
                    reused("write!", String::new(), String::clear, |out| write::$page($data, out)),
                ],
            );
        };
    }
    race!(table, table_to, rows, 1);
    race!(teams, teams_to, league, 100);
}
