//! Decides what a signal does: the first asks the server to finish, the second ends it at once.

use std::io;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::server::Server;

/// Lets SIGTERM and SIGINT stop `server`.
///
/// # Errors
///
/// The system's, when a handler cannot be installed or its thread not be started.
pub fn stop_on_signals(server: &Arc<Server>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    // Weakly, or this thread, which never ends, would keep the server for ever.
    let server = Arc::downgrade(server);
    thread::Builder::new().name("bine signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if let Some(server) = server.upgrade() {
                server.stop();
            }
        }
    })?;
    Ok(())
}
