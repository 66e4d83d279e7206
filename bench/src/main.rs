//! Decides which measurement a command line asks for.

#![forbid(unsafe_code)]

mod allocations;
mod arguments;
mod attacks;
mod carrera;
mod compile;
mod cost;
mod emulator;
mod figures;
mod followers;
mod frames;
mod gather;
mod hostile;
mod journal;
mod kills;
mod live;
mod lookups;
mod machine;
mod memory;
mod peer;
mod plot;
mod push;
mod random;
mod rest;
mod retained;
mod rivals;
#[allow(
    dead_code,
    unused_imports,
    reason = "the tests of the auction walk through it too, and look closer"
)]
mod rubis;
mod schedulers;
mod servers;
mod soak;
mod stalls;
mod surge;
mod tables;
mod templates;
mod tools;
mod waiters;

use std::process::ExitCode;

use anyhow::{Result, bail};

use arguments::Arguments;

const HELP: &str = "\
Measures Bine beside the physical limit and its peers. Prints Markdown; progress goes to stderr.

usage: bine-bench COMMAND [OPTION VALUE]...

  cost      CPU time per request, all servers interleaved
              --rounds N          samples of each figure (5)
              --seconds S         length of a sample (5)
              --only NAME,..      of limit, bine, nginx, hyper, axum, lighttpd, php (all)
              --scenarios NAME,.. of kept-64, kept-4, kept-512, pipelined-16, calls-10, calls-1,
                                  file-984, page-984, values-984, file-64k, file-10m, tls-984,
                                  tls-64k, tls-new, loops-1, loops-2 (all)
  schedulers  what each scheduler costs: CPU time, context switches and system calls per request, and
            document 000's finding that none is faster than its pool
              --rounds N          samples of each figure (5)
              --seconds S         length of a sample (3)
              --only NAME,..      of those that `--scheduler help` lists (all)
              --loads NAME,..     of kept-1, kept-64, calls-1, plain-64, document (all)
  memory    bytes per idle connection, memory at rest, time from exec to the first answer
              --connections N     kept open at once (15000)
              --starts N          starts timed (20)
              --only NAME,..      (bine, nginx)
  stalls    longest answer for bodies of 1 byte to 128 KiB; 35 ms or more is a fault
              --requests N        for each size (200)
              --only NAME,..      (bine)
  hostile   what a normal user feels while others misbehave; Bine's p99 over twice the calm is a fault
              --rounds N          pairs of windows, calm and attacked, for each misbehavior (9)
              --seconds S         length of a window (4)
              --only NAME,..      (bine)
  kills     time to answer again after SIGKILL under load; or whether all that was acknowledged is found
              --times N           (50; of writers 1000)
              --through WHAT      kill those who write to the store, or to the journal, instead of servers
              --seed N            for the moments of the kills (1)
              --only NAME,..      (bine)
  soak      the demo under mixed use; a growth of memory by 5 % or another number of descriptors is a fault
              --minutes N         after the warm-up (120)
              --rate N            requests per second, of all users together (400)
              --rests S           after each round without traffic, in which CPU time is a fault too (0)
              --work S            that users work in each round (60)
              --warm-up N         rounds at 16 times the rate, without rests, before the first that counts (10)
              --program FILE      a `bine` that is built already, in place of this checkout's
              --into FOLDER       for soak.tsv and soak.svg, memory over time
  attacks   what normal clients feel, and how much memory the server takes, while a few addresses attack it; runs in
            a network namespace of its own, which needs root or user namespaces
              --only NAME,..      of bodies, bodies-1g, channels, channel-bodies, places, slow-heads, slow-readers,
                                  handshakes, live-256, live-1500, live-leavers (all)
              --calm S            length of the window before an attack (5)
              --seconds S         length of the attacked window (10)
              --bound MIB         of the server's memory (each attack's own)
              --programs FOLDER   with a `bine` and a `wall` that are built already, in place of this checkout's
              --into FOLDER       for attacks.tsv and plots
              --judge             end with status 1 if normal clients were harmed
  rest      whether `bine serve` still answers, times out and stops after a time without traffic, with one loop
            of each scheduler; any failure is a fault
              --minutes N         without traffic (60)
              --only NAME,..      of hybrid, event, cohort (all)
              --program FILE      a `bine` that is built already, in place of this checkout's
  allocations  heap allocations per request in steady state; Bine's must be 0
              --requests N        counted, after 10000 to warm up (100000)
              --only NAME,..      (bine)
  journal   durable groups of records beside plain appends of the same bytes, on the disk of target/;
            under 0.6 of their rate is a fault
              --rounds N          samples of each figure (9)
              --groups N          in a sample (500)
  rivals    rows durable beside redb, fjall, SQLite and plain appends, on the disk of target/; under 0.6 of
            the appends' rate is a fault, as is less than 200000 rows/s where a sync comes later
              --rounds N          samples of each figure (5)
              --seconds S         length of a sample (3)
              --only NAME,..      of floor-alone, floor-grouped, bine-alone, bine, redb,
                                  redb-grouped, fjall, fjall-grouped, sqlite, sqlite-grouped (all)
              --works NAME,..     of commit-1, commit-64, interval-1, interval-64, none-1, none-64,
                                  read (all)
  tables    what rows in memory cost: looks, commits without a sync, starts, bytes
              --rows N            (1000000)
              --only NAME,..      of looks, commits, starts (all)
              --rounds N          samples of each figure (9)
  frames    nanoseconds of a WebSocket frame, read and written
              --samples N         (21)
  polls     user memory of a waiting poll of channels, over real sockets
              --followers N,..    (1000,5000,15000)
              --only NAME,..      of hybrid, event, pool (a thread for each), nchan (hybrid, nchan)
  fanout    traffic, trip times, received share and memory while messages go to many (document 004)
              --followers N,..    (10,100,1000)
              --messages N        published (50)
              --interval MS       between two of them (100)
              --views NAME,..     of poll, events, pull (poll)
              --only NAME,..      of floor, hybrid, event, pool, nchan (floor, hybrid, pool)
              --rounds N          (3)
  storm     all followers leave, and come back at once with old cursors
              --followers N       (16000)
              --messages N        (20)
              --interval MS       (1000)
  live      live pages and services: what a patch costs beside a raw send of the same bytes, what each viewer
            takes, how long a post takes to be seen, what calls and live pages cost beside hello
              --only PART,..      of viewers, calls, pages, script (all)
              --viewers N,..      (1000,10000)
              --lengths N,..      of the patch, less its frame (200)
              --posts N           that count (30)
              --interval MS       from a post to the next, at the least (150)
              --rounds N          (5)
              --seconds S         length of a sample of calls and pages (3)
  push      tables 1 and 2 and figures 7 to 11 of document 004: client pull, a thread per poll, event-driven,
            Nchan, and a floor; about 30 minutes; what was measured stays, and a run that was stopped goes on
              --only PART,..      of tables, figures (both)
              --peers N,..        (10,100,1000; figures 500,1000,2000,4000,8000,16000)
              --methods NAME,..   of pull, thread, event, nchan, floor (all)
              --intervals S,..    between publications, of the tables (10,20,30,40,50)
              --seconds S         that a point of the tables takes (200)
              --rounds N          of the figures (3)
              --into FOLDER       for raw data, tables and figures (bench/push in the target folder)
              --quick             ten times the pace, fewer points: in four minutes it is seen to work
  surge     writes the files that SURGE asks for, and tells how its requests are spread
              --seed N            (1)
              --files N           (2000)
              --references N      in the sequence (110000)
              --into FOLDER       (bench in the target folder)
  carrera   figures 3 to 9 of document 001: what a pool of 500 threads, the hybrid with 10 workers and the hybrid
            with session admission complete when more come than they can serve, and what a surge does; about 100
            minutes; what was measured stays, and a run that was stopped goes on; what another version has
            measured, or other options, is told and measured anew
              --only PART,..      of static (SURGE), dynamic (the auction), surge (all)
              --ways NAME,..      of pool, hybrid, admission (all)
              --loads PERCENT,..  of what saturates the hybrid (50,75,100,150,200,400)
              --seconds S         of a point that count; before and after half of it, of the auction as much (60)
              --pace PERCENT      of SURGE's times between requests (25)
              --share PERCENT     of its core that a server of files has, or visitors could not overload it (6)
              --scale PERCENT     of RUBiS's users, items and bids, in the auction (10)
              --think MS          between two pages of the auction, in the mean (300)
              --delay MS          that a page of the auction waits, in place of a database (5)
              --hashes KB         that it computes meanwhile (1000)
              --seed N            (1)
              --into FOLDER       for raw data (bench/carrera in the target folder)
              --plots FOLDER      for tables, figures and points.tsv (where the raw data is)
              --mixed             take what another version has measured, or other options, and say so
  waiters   memory of a parked poll, time of a delivery; publishing, reading and keeping many messages
              --waiters N         (100000)
              --messages N        retained in one channel (1000000)
              --rounds N          samples of each figure (21)
  retained  reading and expiry where a thousand messages are retained, and where a million are
              --counts N,..       (1000,10000,100000,1000000)
              --rounds N          samples of each figure (21)
  lookups   nanoseconds of a look-up in the vocabulary of HTML and CSS
              --samples N         (21)
  templates the public template benchmark and escaping, beside other engines; by criterion
              --seconds S         for each figure (3)
  gather    a constant piece of a page copied before it is sent, beside writev
              --rounds N          (101)
  compile   compile time of a page, beside the same page in maud
              --rounds N          (5)
              --elements N        in the page (1000)

Servers run on core 0 and the load on core 1, on loopback. What is measured is built first.
Needs the Debian packages gcc, curl, openssl, procps, util-linux, wrk, httperf, for
schedulers linux-perf, and for the peers nginx, lighttpd and php-fpm.
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bine-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

// Long because it is a table: some lines for each command.
fn run() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let mut words: Vec<String> = words.collect();
    if matches!(command.as_str(), "-h" | "--help" | "help")
        || words.iter().any(|word| word == "--help")
    {
        print!("{HELP}");
        return Ok(());
    }
    let mut take = |own: &str, flag: &str| {
        let all = words.len();
        words.retain(|word| command != own || word != flag);
        words.len() < all
    };
    let (is_quick, is_mixed) = (take("push", "--quick"), take("carrera", "--mixed"));
    let is_judge = take(attacks::INSIDE, "--judge");
    let accept = |names: &[&str]| Arguments::parse(&words, names);
    match command.as_str() {
        "cost" => cost::run(&accept(&["--rounds", "--seconds", "--only", "--scenarios"])?),
        "schedulers" => schedulers::run(&accept(&["--rounds", "--seconds", "--only", "--loads"])?),
        "memory" => memory::run(&accept(&["--connections", "--starts", "--only"])?),
        "stalls" => stalls::run(&accept(&["--requests", "--only"])?),
        "hostile" => hostile::run(&accept(&["--rounds", "--seconds", "--only"])?),
        "journal" => journal::run(&accept(&["--rounds", "--groups"])?),
        "rivals" => rivals::run(&accept(&["--rounds", "--seconds", "--only", "--works"])?),
        "tables" => tables::run(&accept(&["--rows", "--rounds", "--only", "--start"])?),
        "kills" => kills::run(&accept(&["--times", "--seed", "--only", "--through"])?),
        "soak" => soak::run(&accept(&soak::OPTIONS)?),
        "attacks" => {
            let options: Vec<_> = words.iter().filter(|word| *word != "--judge").cloned().collect();
            attacks::run(&Arguments::parse(&options, &attacks::OPTIONS)?, &words)
        }
        attacks::INSIDE => attacks::run_inside(&accept(&attacks::OPTIONS)?, is_judge),
        "rest" => rest::run(&accept(&["--minutes", "--only", "--program"])?),
        "carrera" => carrera::run(&accept(&carrera::OPTIONS)?, is_mixed),
        "surge" => surge::run(&accept(&["--seed", "--files", "--references", "--into"])?),
        "templates" => templates::run(&accept(&["--seconds"])?),
        "gather" => gather::run(&accept(&["--rounds"])?),
        "compile" => compile::run(&accept(&["--rounds", "--elements"])?),
        "allocations" => allocations::run(&accept(&["--requests", "--only"])?),
        "frames" => frames::run(&accept(&["--samples"])?),
        "polls" => followers::polls(&accept(&["--followers", "--only"])?),
        "fanout" => {
            let own = ["--followers", "--messages", "--interval", "--views", "--only", "--rounds"];
            followers::fanout(&accept(&own)?)
        }
        "storm" => followers::storm(&accept(&["--followers", "--messages", "--interval"])?),
        "push" => {
            let own = [
                "--only",
                "--peers",
                "--methods",
                "--intervals",
                "--seconds",
                "--rounds",
                "--into",
            ];
            push::run(&accept(&own)?, is_quick)
        }
        "live" => {
            let own = [
                "--only",
                "--viewers",
                "--lengths",
                "--posts",
                "--interval",
                "--rounds",
                "--seconds",
            ];
            live::run(&accept(&own)?)
        }
        "waiters" => waiters::run(&accept(&["--waiters", "--messages", "--rounds"])?),
        "retained" => retained::run(&accept(&["--counts", "--rounds"])?),
        "lookups" => lookups::run(&accept(&["--samples"])?),
        "" => bail!("no command; see --help"),
        other => bail!("no command `{other}`; see --help"),
    }
}
