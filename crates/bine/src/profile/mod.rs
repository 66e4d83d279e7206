//! Profiles of allocations: configuration keys and commands that record the allocations of this process.

mod choices;
mod subsystem;
