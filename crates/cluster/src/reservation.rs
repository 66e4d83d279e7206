//! The reservation of a stream for its first snapshot: a message that nodes without the snapshot do not
//! accept.
//!
//! The message is appended on the condition that the stream has no other one, so a node that writes a
//! change at the same moment either precedes it, and the reservation fails, or finds it.

use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::error::{Error, root_cause};
use crate::snapshots;

/// The time for the append.
const APPEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Appends the message, if the stream has no message, or only equal ones, and no snapshot.
pub(crate) async fn append(connection: &Connection, message: &'static [u8]) -> Result<u64, Error> {
    let last = connection.last().await?;
    if last > 0 {
        let found = connection.stream.get_raw_message(last).await;
        // An equal message is appended only after equal ones. A missing one is purged.
        if !found.is_ok_and(|found| found.payload == message) {
            return Err(in_use(connection));
        }
    }
    if !snapshots::list(connection).await?.is_empty() {
        return Err(in_use(connection));
    }
    let unacknowledged = |reason: &str| {
        Error::Server(format!(
            "the stream `{}` does not accept a message ({reason}): check the NATS servers, and try again",
            connection.name
        ))
    };
    let publish =
        PublishMessage::build().payload(Bytes::from_static(message)).expected_last_sequence(last);
    let append = async {
        connection.publishing.send_publish(connection.subject.clone(), publish).await?.await
    };
    let appended = timeout(APPEND_TIMEOUT, append)
        .await
        .map_err(|_| unacknowledged("no answer within 10 s"))?;
    match appended {
        Ok(acknowledgment) => Ok(acknowledgment.sequence),
        Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
            Err(in_use(connection))
        }
        Err(error) => Err(unacknowledged(&root_cause(&error))),
    }
}

/// Checks that nothing was appended after a reservation.
pub(crate) async fn check_is_last(connection: &Connection, position: u64) -> Result<(), Error> {
    if connection.last().await? == position {
        return Ok(());
    }
    Err(Error::Unsuitable(format!(
        "another program has written to the stream `{}` meanwhile: stop it, and try again with a new \
         `cluster-name`",
        connection.name
    )))
}

fn in_use(connection: &Connection) -> Error {
    let name = &connection.name;
    Error::Unsuitable(format!(
        "the cluster `{name}` has data already: choose a new `cluster-name`, or stop its nodes and \
         remove its stream and buckets from the NATS servers, whose names begin with `{name}`"
    ))
}
