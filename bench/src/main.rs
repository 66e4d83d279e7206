//! Parses the command line and runs the chosen benchmark.

#![forbid(unsafe_code)]

mod ab;
mod allocations;
mod arena;
mod arguments;
mod attacks;
mod auction;
mod backups;
mod board;
#[path = "../peers/board_data.rs"]
mod board_data;
mod bursts;
mod certificates;
mod commits;
mod compile;
mod cost;
mod crowd;
mod data_folder;
mod emulator;
mod figures;
mod floor;
mod followers;
mod frames;
mod fremlin;
mod gather;
mod hashes;
mod hop;
mod hop_io;
mod hostile;
mod journal;
mod kills;
mod limiter;
mod live;
mod live_page;
mod log_ins;
mod lookups;
mod machine;
mod marlow;
mod memory;
mod namespace;
mod nats;
mod nodes;
mod origin;
mod overload;
mod peer;
mod plot;
mod postgres;
mod progress;
mod proxy;
mod push;
mod random;
mod record;
mod recorders;
mod rest;
mod results;
mod retained;
mod rights;
mod rivals;
#[allow(
    dead_code,
    unused_imports,
    reason = "the tests of the auction use it too, and read more of it"
)]
mod rubis;
mod samples;
mod schedulers;
mod scripts;
mod servers;
mod service_calls;
mod soak;
mod sockets;
mod stalls;
mod surge;
mod tables;
mod templates;
mod tomcat;
mod tools;
mod trials;
mod waiters;
mod windows;
mod workers;
mod wrk;

use std::process::ExitCode;

use anyhow::{Result, bail};

use arguments::Arguments;

const HELP: &str = "\
Benchmarks of Bine, compared with other servers and with the physical limit. Prints Markdown; progress goes to stderr.

usage: bine-bench COMMAND [OPTION VALUE]... [--quick]

`--quick` is a trial of about two minutes, without the time to build: fewer and shorter samples. Other options take
precedence. These commands have it: arena, board, commits, cost, fanout, fremlin, hop, hop-io, marlow, memory, overload, proxy,
push, push-nodes, recorders, schedulers, scripts, workers. Its results stay in the target folder.

  cost      CPU time per request, all servers interleaved
              --rounds N          samples of each figure (5)
              --seconds S         length of a sample (5)
              --only NAME,..      of limit, bine, nginx, hyper, axum, lighttpd, php (all)
              --scenarios NAME,.. of kept-64, kept-4, kept-512, pipelined-16, calls-10, calls-1,
                                  file-984, page-984, values-984, file-64k, file-10m, tls-984,
                                  tls-64k, tls-new, h2-984, h2-values, loops-1, loops-2 (all)
              --into FOLDER       for the samples (bench/samples in the target folder)
  scripts   CPU time per request of pages in TSX, interleaved with the same pages in Rust, PHP, Node and
            Bun; fails if their bytes differ
              --rounds N          samples of each figure (5)
              --seconds S         length of a sample (3)
              --only NAME,..      of bine-tsx, bine-rust, php, node, bun (all that are installed)
              --pages NAME,..     of hello, rows20, rows50 (all)
              --programs FOLDER   existing builds of `bine` and `examples/script-pages`
              --into FOLDER       for the samples (bench/samples in the target folder)
  service-calls  CPU time of a call between services in Rust and in TSX; fails above 10 us
              --rounds N          samples of each figure (5)
              --seconds S         length of a sample (3)
              --calls N           calls of one request (50)
  schedulers  CPU time, context switches and system calls per request of each scheduler, and the finding of
            Serrano (\"Hop\") that no scheduler is faster than its pool
              --rounds N          samples of each figure (5)
              --seconds S         length of a sample (3)
              --only NAME,..      of those that `--scheduler help` lists (all)
              --loads NAME,..     of kept-1, kept-64, calls-1, plain-64, document (all)
              --into FOLDER       for the samples (bench/samples in the target folder)
  hop       figures 6 and 7 of Serrano, \"Hop\": sessions of five requests at a rising rate, for a file, a page of
            the same bytes and a file of 64 KiB; each scheduler, and nginx and lighttpd with PHP, Apache with
            mod_php, Tomcat, Yaws, Varnish, hyper, axum; about 80 minutes; keeps earlier results and resumes a
            stopped run
              --only NAME,..      of bine-hybrid and the other schedulers, bine-as-hop, nginx, apache, lighttpd,
                                  tomcat, yaws, varnish, hyper, axum (all)
              --contents NAME,..  of file, page, file-64k (all)
              --rates N,..        sessions per second (200,400,800,1600,3200,6400,12800)
              --rounds N          (2)
              --seconds S         per point (4)
              --share PERCENT     of its core that a server gets, so that the load exceeds it (25)
              --into FOLDER       for raw data, tables and figures (bench/hop in the target folder)
  hop-io    sections 3.2 and 3.3 of Serrano, \"Hop\": long pages in chunks and gathered first, the algorithm of Nagle, the
            send buffer and the backlog; runs in a separate network namespace, which needs root or user
            namespaces; about five minutes
              --rounds N          samples of each figure (5)
              --requests N        of a sample of delays (300)
              --seconds S         length of a sample of CPU time (3)
              --into FOLDER       for the samples (bench/samples in the target folder)
  marlow    figure 1 of Marlow, \"Developing a high-performance web server in Concurrent Haskell\": a new connection for
            each request of a file of 1 KB, clients that wait for 1 s, and a rate that rises past three times the
            most responses; Bine with and without limits, nginx, Apache; then floods of bogus requests during a
            steady load; at most 90 minutes; keeps earlier results and resumes a stopped run
              --only NAME,..      of bine, bine-unlimited, bine-150, nginx, apache (all)
              --contents NAME,..  of file, page, which only Bine has (both)
              --parts NAME,..     of load, garbage, heads (all)
              --rates N,..        connections per second (250 to 90000, each 1.4 times the one before)
              --flood-rates N,..  bogus connections per second; always also without any (500,1000,2000,4000,8000)
              --legal N           connections per second during a flood (400)
              --rounds N          (3)
              --seconds S         per point (5)
              --share PERCENT     of its core that a server gets, so that the load exceeds it (12)
              --into FOLDER       for raw data, tables and figures (bench/marlow in the target folder)
  board     TechEmpower's cases as pages of durable tables, compared with axum and SQLite, axum and PostgreSQL and
            PocketBase: CPU time per response, database included; deliveries of an update to 100 and to 1000
            subscribers; about 15 minutes; keeps earlier results and resumes a stopped run
              --only NAME,..      of bine, axum-sqlite, axum-sqlite-grouped, axum-postgres, pocketbase (all that
                                  are installed)
              --cases NAME,..     of plaintext, json, db, queries, fortunes, updates, record, list, change,
                                  fan-100, fan-1000 (all)
              --rounds N          (3)
              --seconds S         length of a sample (5)
              --connections N     kept by the load (64)
              --deliveries N      of a sample with subscribers, at most (100000)
              --data FOLDER       for the tables of all servers, open to the user of PostgreSQL (/var/tmp)
              --into FOLDER       for raw data and tables (bench/board-results in the target folder)
  arena     cases of HttpArena, a public benchmark: Bine, axum and, for files, nginx; about five minutes
              --only NAME,..      of bine, axum, nginx (all)
              --cases NAME,..     of baseline, short-lived, json, json-compressed, static (all)
              --connections N     (512)
              --rounds N          samples of each figure (3)
              --seconds S         length of a sample (5)
              --into FOLDER       for the samples (bench/samples in the target folder)
  proxy     the reverse proxy compared with nginx, in front of the same origin: CPU time per request of a body of
            1 KB, and rate and memory of a large response
              --rounds N          samples of each figure (5)
              --seconds S         length of a sample (5)
              --connections N     kept by the load (64)
              --megabytes N       of the large response (100)
              --only NAME,..      of bine, nginx (both)
              --into FOLDER       for the samples (bench/samples in the target folder)
  fremlin   the benchmark of Fremlin, \"Serving dynamic webpages in less than a millisecond\": ApacheBench with a connection for
            each request, then with kept ones
              --only NAME,..      of bine, nginx, varnish, hyper, axum, php, go, node, puma (all)
              --rounds N          samples of each figure (5)
              --requests N        of a sample (10000)
              --clients N         at a time (100)
              --into FOLDER       for the samples (bench/samples in the target folder)
  memory    bytes per idle connection, memory at rest, time from exec to the first response
              --connections N     open at once (15000)
              --starts N          starts timed (20)
              --protocol NAME     of the connections: http1, http2 (http1)
              --only NAME,..      of bine, nginx, hyper (bine, nginx)
              --into FOLDER       for the samples (bench/samples in the target folder)
  stalls    longest response time for bodies of 1 byte to 128 KiB; fails at 35 ms or more
              --requests N        for each size (200)
              --only NAME,..      (bine)
  hostile   latency of normal clients while other clients misbehave; fails if Bine's p99 exceeds twice the baseline
              --rounds N          pairs of windows, baseline and attacked, for each misbehavior (9)
              --seconds S         length of a window (4)
              --only NAME,..      (bine)
  hashes    latency of pages while clients log in without a pause; fails if the p99 exceeds twice the calm one
              --clients N,..      that log in (1,2,8)
              --kinds NAME,..     of owasp (the default cost), cheap (microseconds: the log-ins alone) (both)
              --rounds N          pairs of windows, calm and with log-ins (9)
              --seconds S         length of a window (4)
              --interval MS       between two pages (2)
              --cores N           of the server (1)
  kills     time to the first response after SIGKILL under load; or whether acknowledged writes survive SIGKILL
              --times N           (50; of writers 1000)
              --through WHAT      kill writers to the store, or to the journal, instead of servers
              --seed N            for the moments of the kills (1)
              --only NAME,..      (bine)
  soak      the demo under mixed use; fails if memory grows by 5 % or the number of descriptors changes
              --minutes N         after the warm-up (120)
              --rate N            requests per second of all users (400)
              --rests S           idle time after each round, in which CPU time is a failure too (0)
              --work S            time under load in each round (60)
              --warm-up N         rounds at 16 times the rate, without rests, before the first that counts (10)
              --program FILE      an existing build of `bine`, instead of this checkout's
              --into FOLDER       for soak.tsv and soak.svg, memory over time
  attacks   latency of normal clients and memory of the server while a few addresses attack it; runs in a
            separate network namespace, which needs root or user namespaces
              --only NAME,..      of bodies, bodies-1g, channels, channel-bodies, places, slow-heads, slow-readers,
                                  handshakes, live-256, live-1500, live-leavers (all)
              --calm S            length of the window before an attack (5)
              --seconds S         length of the attacked window (10)
              --bound MIB         limit of the server's memory (each attack's own)
              --programs FOLDER   with existing builds of `bine` and `wall`, instead of this checkout's
              --into FOLDER       for attacks.tsv and plots
              --judge             exit with status 1 if normal clients were harmed
  rest      whether `bine serve` still answers, times out and stops after a time without traffic, with one loop
            of each scheduler; fails if it does not
              --minutes N         without traffic (60)
              --only NAME,..      of hybrid, event, cohort (all)
              --program FILE      an existing build of `bine`, instead of this checkout's
  allocations  heap allocations per request in steady state, which fails if Bine's are not 0; and of connections
            with one request for a file of 512 bytes (Serrano, \"Hop\", section 3.1), by stage
              --requests N        counted, after 10000 to warm up (100000)
              --connections N     counted, after as many to warm up (10000)
              --only NAME,..      (bine)
  journal   durable groups of records, compared with plain appends of the same bytes, on the disk of target/;
            fails under 0.6 of their rate
              --rounds N          samples of each figure (9)
              --groups N          in a sample (500)
  rivals    durable rows, compared with redb, fjall, SQLite and plain appends, on the disk of target/; fails under
            0.6 of the rate of appends, or under 200000 rows/s with deferred syncs
              --rounds N          samples of each figure (5)
              --seconds S         length of a sample (3)
              --only NAME,..      of floor-alone, floor-grouped, bine-alone, bine, redb,
                                  redb-grouped, fjall, fjall-grouped, sqlite, sqlite-grouped (all)
              --works NAME,..     of commit-1, commit-64, interval-1, interval-64, none-1, none-64,
                                  read (all)
  tables    cost of rows in memory: reads, commits without a sync, starts, bytes
              --rows N            (1000000)
              --only NAME,..      of looks, commits, starts (all)
              --rounds N          samples of each figure (9)
  frames    nanoseconds per WebSocket frame, read and written
              --samples N         (21)
  polls     user memory of a waiting poll of channels, over real sockets
              --followers N,..    (1000,5000,15000)
              --only NAME,..      of hybrid, event, pool (a thread for each), nchan (hybrid, nchan)
  fanout    traffic, delivery times, received share and memory while messages go to many subscribers; Bine, Nchan,
            Centrifugo and a floor; about eight minutes
              --followers N,..    (100,1000,8000)
              --messages N        published (50)
              --interval MS       between two messages (200)
              --views NAME,..     of poll, events (server-sent events), pull (events)
              --only NAME,..      of floor, hybrid, event, pool, nchan, centrifugo (floor, hybrid, nchan,
                                  centrifugo), one-loop, two-loops (on both cores, which subscribers share)
              --rounds N          (3)
              --into FOLDER       for the samples (bench/samples in the target folder)
  storm     all subscribers disconnect and reconnect at once with old cursors
              --followers N       (16000)
              --messages N        (20)
              --interval MS       (1000)
  live      live pages and services: cost of a patch compared with a raw send of the same bytes, cost per viewer,
            time from a post to its display, cost of calls and live pages compared with hello
              --only PART,..      of viewers, calls, pages, script (all)
              --viewers N,..      (1000,10000)
              --lengths N,..      of the patch, less its frame (200)
              --posts N           that count (30)
              --interval MS       minimum time between posts (150)
              --rounds N          (5)
              --seconds S         length of a sample of calls and pages (3)
  push      tables 1 and 2 and figures 7 to 11 of Liu and Cui, \"PushUp\": client pull, a thread per poll,
            event-driven, Nchan, and a floor; about 30 minutes; keeps earlier results and resumes a stopped run
              --only PART,..      of tables, figures (both)
              --peers N,..        (10,100,1000; figures 500,1000,2000,4000,8000,16000)
              --methods NAME,..   of pull, thread, event, nchan, floor (all)
              --intervals S,..    between publications, of the tables (10,20,30,40,50)
              --seconds S         per point of the tables (200)
              --rounds N          of the figures (3)
              --into FOLDER       for raw data, tables and figures (bench/push in the target folder)
  push-nodes  figures 12 and 13 of Liu and Cui: one, two and four nodes behind HAProxy; a stream of NATS compared
            with unicast; received share, trip times, CPU time and memory; about 14 minutes; keeps earlier
            results and resumes a stopped run
              --nodes N,..        (1,2,4)
              --peers N,..        (500,1000,2000,4000,8000,16000)
              --distributions NAME,..  of stream, stream-tcp (HAProxy balances connections), unicast (all)
              --messages N        per point (5)
              --rounds N          (2)
              --nats-server FILE  (that of NATS_SERVER, or of the path)
              --into FOLDER       for raw data, tables and figures (bench/push-nodes in the target folder)
  commits   transactions of one, two and four nodes that share a stream, compared with publishes of NATS alone and
            with a compare-and-set on the last sequence
              --copies N,..       NATS servers that store each change, of 1, 3, 5 (1,3)
              --syncs NAME,..     of default, always: when these servers sync their files (both)
              --commits N         in flight, for rates (20000)
              --rows N            of a table that a node joins with; 0: none joins (0)
              --nats-server FILE  (that of NATS_SERVER, or of the path)
  surge     writes the files that SURGE requests, and prints the distribution of its requests
              --seed N            (1)
              --files N           (2000)
              --references N      in the sequence (110000)
              --into FOLDER       (bench in the target folder)
  overload  figures 3 to 9 of Carrera et al., \"A hybrid web server architecture for e-commerce\": sessions that a pool
            of 500 threads, the hybrid with 10 workers, the hybrid with session admission and Tomcat complete under
            overload, and the effect of a surge; about 90 minutes; keeps earlier results and resumes a stopped
            run; measures again, with a notice, what a different version or different options have measured
              --only PART,..      of static (SURGE), dynamic (the auction), surge, postgres (the auction with its
                                  tables in PostgreSQL; about 30 minutes) (static,dynamic,surge)
              --ways NAME,..      of pool, hybrid, admission, tomcat-200, tomcat-500 (pool, hybrid, tomcat-200 for
                                  static; pool, hybrid, admission for surge; all for dynamic)
              --loads PERCENT,..  of the saturation rate of the hybrid (25,50,100,150,200,400)
              --seeds N,..        of the visitors; a surge has the first one only (1,2,3)
              --seconds S         counted per point; half of it before and after, for the auction one and a half
                                  times that (8)
              --pace PERCENT      of SURGE's times between requests (25)
              --share PERCENT     of its core that a server of files gets, so that visitors can overload it (6)
              --scale PERCENT     of RUBiS's users, items and bids, in the auction (10)
              --think MS          mean time between two pages of the auction (150)
              --delay MS          wait in a page of the auction, in place of a database (2)
              --hashes KB         computed meanwhile (500)
              --into FOLDER       for raw data (bench/overload in the target folder)
              --plots FOLDER      for tables, figures and points.tsv (the folder of the raw data)
              --mixed             use results of different versions or options, with a notice
              --tls               all connections use TLS, and resume sessions (bench/overload-tls)
  recorders CPU time of a request of a program with and without the features `profile` and `tracing` of bine, and
            while allocations and spans are recorded; about two minutes
              --connections N     (64)
              --rounds N          samples of each figure (7)
              --seconds S         length of a sample (3)
              --into FOLDER       for the samples (bench/samples in the target folder)
  workers   pages per second of fixed numbers of worker threads and of the default (Carrera et al., section 7), for
            pages that wait long and for pages that wait little; about ten minutes
              --pages NAME,..     of long (40 ms), short (5 ms) (both)
              --workers N,..      (10,16,32,64,128,256)
              --connections N     (256)
              --rounds N          samples of each figure (3)
              --seconds S         length of a sample (5)
              --into FOLDER       for the samples (bench/samples in the target folder)
  waiters   memory of a parked poll, time of a delivery; publishing, reading and retaining many messages
              --waiters N         (100000)
              --messages N        retained in one channel (1000000)
              --rounds N          samples of each figure (21)
  retained  reads and expiry with a thousand and with a million retained messages
              --counts N,..       (1000,10000,100000,1000000)
              --rounds N          samples of each figure (21)
  log-ins   log-ins without the hash of the password, among a thousand and among a million accounts; fails above
            a p99 of 1 ms
              --users N           (1000000)
              --log-ins N         in a sample (1000)
              --rounds N          samples of each figure (9)
              --syncs NAME,..     of commit, interval, none (commit,none)
  backups   latency of pages and log-ins during backups, idle, at half and at full load; fails if the p99 of pages
            exceeds twice the calm one
              --users N           accounts in the tables (300000)
              --rounds N          pairs of windows, calm and with backups (9)
              --seconds S         length of a window (4)
              --loads NAME,..     of none, half, full (all)
              --shares PERCENT,.. of the time in which a backup works; the first one is judged (10,100)
              --program FILE      an existing build of `bine`, instead of this checkout's
  rights    nanoseconds per check of rights against 10 000 rules; fails above 1 us
              --rounds N          samples of each figure (5)
  lookups   nanoseconds per look-up in the vocabulary of HTML and CSS
              --samples N         (21)
  templates the public template benchmark and escaping, compared with other engines; by criterion
              --seconds S         for each figure (3)
  gather    copying a constant piece of a page before sending, compared with writev
              --rounds N          (101)
  compile   compile time of a page, compared with the same page in maud
              --rounds N          (5)
              --elements N        in the page (1000)

Servers run on core 0 and the load on core 1, on loopback. Builds what it measures first.
Needs the Debian packages gcc, curl, openssl, procps, util-linux, wrk, httperf, for
schedulers and hop linux-perf, and for the other servers nginx, lighttpd and php-fpm.
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

// Long because it is a table with a few lines per command.
fn run() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let words: Vec<String> = words.collect();
    if matches!(command.as_str(), "-h" | "--help" | "help")
        || words.iter().any(|word| word == "--help")
    {
        print!("{HELP}");
        return Ok(());
    }
    let mut words = trials::expand(&command, words)?;
    let mut take = |own: &str, flag: &str| {
        let all = words.len();
        words.retain(|word| command != own || word != flag);
        words.len() < all
    };
    let is_quick_push = take("push", "--quick");
    let overload = overload::Flags {
        is_quick: take("overload", "--quick"),
        is_mixed: take("overload", "--mixed"),
        is_secure: take("overload", "--tls"),
    };
    let is_judge = take(attacks::INSIDE, "--judge");
    let accept = |names: &[&str]| Arguments::parse(&words, names);
    match command.as_str() {
        "cost" => cost::run(&accept(&cost::OPTIONS)?),
        "scripts" => scripts::run(&accept(&scripts::OPTIONS)?),
        "service-calls" => service_calls::run(&accept(&service_calls::OPTIONS)?),
        "schedulers" => schedulers::run(&accept(&schedulers::OPTIONS)?),
        "memory" => memory::run(&accept(&memory::OPTIONS)?),
        "hop" => hop::run(&accept(&hop::OPTIONS)?),
        "hop-io" => {
            accept(&hop_io::OPTIONS)?;
            hop_io::run(&words)
        }
        hop_io::INSIDE => hop_io::run_inside(&accept(&hop_io::OPTIONS)?),
        "marlow" => marlow::run(&accept(&marlow::OPTIONS)?),
        "board" => board::run(&accept(&board::OPTIONS)?),
        "arena" => arena::run(&accept(&arena::OPTIONS)?),
        "fremlin" => fremlin::run(&accept(&fremlin::OPTIONS)?),
        "proxy" => proxy::run(&accept(&proxy::OPTIONS)?),
        "stalls" => stalls::run(&accept(&["--requests", "--only"])?),
        "hostile" => hostile::run(&accept(&["--rounds", "--seconds", "--only"])?),
        "journal" => journal::run(&accept(&["--rounds", "--groups"])?),
        "rivals" => rivals::run(&accept(&["--rounds", "--seconds", "--only", "--works"])?),
        "tables" => tables::run(&accept(&["--rows", "--rounds", "--only", "--start"])?),
        "hashes" => {
            let own = ["--clients", "--kinds", "--rounds", "--seconds", "--interval", "--cores"];
            hashes::run(&accept(&own)?)
        }
        "kills" => kills::run(&accept(&["--times", "--seed", "--only", "--through"])?),
        "soak" => soak::run(&accept(&soak::OPTIONS)?),
        "attacks" => {
            let options: Vec<_> = words.iter().filter(|word| *word != "--judge").cloned().collect();
            attacks::run(&Arguments::parse(&options, &attacks::OPTIONS)?, &words)
        }
        attacks::INSIDE => attacks::run_inside(&accept(&attacks::OPTIONS)?, is_judge),
        "rest" => rest::run(&accept(&["--minutes", "--only", "--program"])?),
        "overload" => overload::run(&accept(&overload::OPTIONS)?, overload),
        "recorders" => recorders::run(&accept(&recorders::OPTIONS)?),
        "workers" => workers::run(&accept(&workers::OPTIONS)?),
        "surge" => surge::run(&accept(&["--seed", "--files", "--references", "--into"])?),
        "templates" => templates::run(&accept(&["--seconds"])?),
        "gather" => gather::run(&accept(&["--rounds"])?),
        "compile" => compile::run(&accept(&["--rounds", "--elements"])?),
        "allocations" => allocations::run(&accept(&["--requests", "--connections", "--only"])?),
        "frames" => frames::run(&accept(&["--samples"])?),
        "polls" => followers::polls(&accept(&["--followers", "--only"])?),
        "fanout" => followers::fanout(&accept(&followers::FANOUT_OPTIONS)?),
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
            push::run(&accept(&own)?, is_quick_push)
        }
        "push-nodes" => nodes::run(&accept(&nodes::OPTIONS)?),
        "commits" => commits::run(&accept(&commits::OPTIONS)?),
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
        "rights" => rights::run(&accept(&["--rounds"])?),
        "backups" => backups::run(&accept(&[
            "--users",
            "--rounds",
            "--seconds",
            "--loads",
            "--shares",
            "--program",
        ])?),
        "log-ins" => log_ins::run(&accept(&["--users", "--log-ins", "--rounds", "--syncs"])?),
        "lookups" => lookups::run(&accept(&["--samples"])?),
        "" => bail!("no command; see --help"),
        other => bail!("no command `{other}`; see --help"),
    }
}
