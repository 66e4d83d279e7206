//! The upload of a snapshot: one thread creates the blocks, and another one sends them.

use std::sync::mpsc;
use std::thread;

use bine_cluster::Error;

use crate::store::ReplicaSnapshot;

/// Blocks between the two threads.
const BLOCKS_IN_FLIGHT: usize = 2;

/// Creates the blocks of a snapshot, which `send` receives on another thread.
///
/// # Errors
///
/// Those of `send`.
pub(crate) fn upload<T: Send>(
    snapshot: ReplicaSnapshot,
    send: impl FnOnce(mpsc::IntoIter<Vec<u8>>) -> Result<T, Error> + Send,
) -> Result<T, String> {
    let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(BLOCKS_IN_FLIGHT);
    thread::scope(|scope| {
        let sending = scope.spawn(move || send(receiver.into_iter()));
        let mut put = |block: &[u8]| {
            sender.send(block.to_vec()).map_err(|_| "the upload has ended".to_owned())
        };
        let written = snapshot.write(&mut put);
        drop(sender);
        let sent = sending.join().map_err(|_| "the upload panicked".to_owned())?;
        // The error of the upload is the cause of the other one.
        let sent = sent.map_err(|error| error.to_string())?;
        written?;
        Ok(sent)
    })
}
