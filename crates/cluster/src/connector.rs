//! Opening a connection: addresses, credentials and TLS, and errors that name the fix.

use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use tokio::sync::watch;

use crate::address::{Login, Servers};
use crate::error::{Error, root_cause};
use crate::options::Options;

/// The time for one request to a server.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The time in which a connection must be open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Two pings without a response close a connection, so a client leaves a server that hangs.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// Opens a connection that repairs itself. Counts its losses in `losses`.
pub(crate) async fn connect(
    options: &Options,
    servers: &Servers,
    losses: watch::Sender<u64>,
) -> Result<Client, Error> {
    let mut connect = ConnectOptions::new()
        .name(format!("bine {}", options.node))
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .max_reconnects(None)
        .event_callback(move |event| {
            if matches!(event, Event::Disconnected | Event::Closed) {
                losses.send_modify(|count| *count += 1);
            }
            std::future::ready(())
        });
    connect = match servers.login.clone() {
        Login::Anonymous => connect,
        Login::Token(token) => connect.token(token),
        Login::Password { user, password } => connect.user_and_password(user, password),
    };
    if let Some(path) = &options.credentials {
        connect = connect.credentials_file(path).await.map_err(|error| {
            let path = path.display();
            Error::Misuse(format!("the file of credentials {path} cannot be read: {error}"))
        })?;
    }
    if let Some(path) = &options.authority {
        // Read later only by the library, whose error would not name the file.
        std::fs::metadata(path).map_err(|error| {
            let path = path.display();
            Error::Misuse(format!("the file of certificates {path} cannot be read: {error}"))
        })?;
        connect = connect.add_root_certificates(path.clone());
    }
    if servers.addresses.iter().any(async_nats::ServerAddr::tls_required) {
        connect = connect.require_tls(true);
    }
    let addresses = &servers.addresses[..];
    connect.connect(addresses).await.map_err(|error| connect_error(&error, &servers.shown))
}

fn connect_error(error: &async_nats::ConnectError, shown: &str) -> Error {
    let cause = root_cause(error);
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            Error::Unauthorized(format!(
                "the NATS server at {shown} rejects the credentials ({cause}): correct the user and \
                 the password in the URL, or the file of credentials"
            ))
        }
        ConnectErrorKind::Tls => Error::Unreachable(format!(
            "no TLS connection to {shown} can be opened ({cause}): check that the server uses TLS, \
             and that its authority is trusted"
        )),
        ConnectErrorKind::Dns => Error::Unreachable(format!(
            "the host of {shown} has no address ({cause}): correct `cluster`"
        )),
        _ => Error::Unreachable(format!(
            "no NATS server answers at {shown} ({cause}): start one with `nats-server --jetstream`, \
             or correct `cluster`"
        )),
    }
}
