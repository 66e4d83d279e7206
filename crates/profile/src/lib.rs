//! Exact profiles of heap allocations: each allocation with its call stack, the stage of the request
//! and the route.
//!
//! Modules depend downwards only. From the lowest layer up:
//!
//! - `stage`: the stages of a request.
//! - `traced`: the stages as spans of `tracing`, with the feature of that name.
//! - `span`: the stage and the route of each thread, and the number of requests. The server and the
//!   web core call it. While no profile is recorded, a call is one load and one branch.
//! - `profile`: a profile as a value, and its file. `report`: sums by function, route and stage.
//! - `samples`: samples of the processor as a profile.
//! - `stack`, `table`: the walk of a call stack, and the bounded table of allocations.
//! - `symbols`: names of functions for addresses.
//! - `recorder`: start and end of a recording. `allocator`: the allocator that is recorded.

mod allocator;
mod profile;
mod recorder;
mod report;
mod samples;
mod span;
mod stack;
mod stage;
mod symbols;
mod table;
#[cfg(feature = "tracing")]
mod traced;

pub use allocator::Allocator;
pub use profile::{Count, Frame, MAX_FILE, Profile, ReadError, RouteRequests, Stack};
pub use recorder::{Recording, StartError, WrittenProfile, finish, start};
pub use report::{FunctionRow, NameRow, Report, Selection};
pub use span::{Entered, begin_request, count_route, enter, enter_route, set_route};
pub use stage::Stage;
