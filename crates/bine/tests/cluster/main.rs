//! Programs on several nodes, with a real NATS server. The tests are skipped unless the variable
//! `NATS_SERVER` names its program.

mod board;
mod moving;
mod nodes;
mod positions;
mod relay;
mod stale;
mod together;
mod waits;
