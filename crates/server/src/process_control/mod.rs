//! Control of the server process: signals, the supervisor, and the operator's control socket.

pub mod control;
mod signals;
mod supervise;

pub use signals::{on_hangup, reopen_logs_on_signal, stop_on_signals};
pub use supervise::supervise;
