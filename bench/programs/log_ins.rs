//! The program of `hashes` and `log-ins`: a small page, and accounts.
//!
//! With the variable `BENCH_HASHES=cheap`, a hash takes microseconds, so that the rest of a log-in
//! can be measured.

use bine::prelude::*;
use bine::{Accounts, HashingCost};

#[page("/")]
async fn home() -> impl Page {
    html!(<h1>"Hello TLUG"</h1>)
}

fn main() -> Exit {
    let is_cheap = std::env::var_os("BENCH_HASHES").is_some_and(|hashes| hashes == "cheap");
    let cost = if is_cheap { HashingCost::new(8, 1) } else { HashingCost::default() };
    App::new().accounts(Accounts::new().hashing_cost(cost)).page(home).run()
}
