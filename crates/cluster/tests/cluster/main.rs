//! Tests with real NATS servers. `NATS_SERVER` names the program; without it they are skipped.

mod certificates;
mod coordination;
mod following;
mod harness;
mod outages;
mod reservation;
mod security;
mod setup;
mod snapshots;
mod tokens;
