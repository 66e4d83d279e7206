//! Opening a connection: addresses, credentials and TLS, and errors that name the fix.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use async_nats::rustls::{self, AlertDescription, CertificateError};
use async_nats::{
    AuthError, Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerError,
};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::address::{self, Servers};
use crate::credentials::Credentials;
use crate::error::{Error, root_cause};
use crate::options::Options;

/// The time for one request to a server.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The time in which a connection must be open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Two pings without a response close a connection, so a client leaves a server that hangs.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// The time for the search for a server that refuses this node.
const DIAGNOSIS_TIMEOUT: Duration = Duration::from_secs(4);
/// The longest file of certificates, in bytes. A list of all public authorities has 250 KiB.
const LONGEST_FILE: u64 = 4 << 20;

/// Events of a connection that its users watch.
#[derive(Clone, Default)]
pub(crate) struct ConnectionEvents {
    /// Counts closed connections.
    pub(crate) losses: watch::Sender<u64>,
    /// The last request that the server did not permit, in its words.
    denial: watch::Sender<Option<String>>,
}

impl ConnectionEvents {
    fn receive(&self, event: &Event) {
        match event {
            Event::Disconnected | Event::Closed => self.losses.send_modify(|count| *count += 1),
            Event::ServerError(ServerError::Other(text))
                if text.to_lowercase().contains("permissions violation") =>
            {
                self.denial.send_replace(Some(text.trim_matches('\'').to_owned()));
            }
            _ => {}
        }
    }

    /// The error of the last request that the server did not permit. Forgets it.
    pub(crate) fn take_denial(&self) -> Option<Error> {
        self.denial.send_replace(None).map(|denial| {
            Error::Unauthorized(format!(
                "the NATS server does not permit what this node must do ({denial}): give its user the \
                 permissions that the guide to several machines lists, or correct `cluster-name`"
            ))
        })
    }
}

/// Opens a connection that repairs itself.
pub(crate) async fn connect(
    options: &Options,
    servers: &Servers,
    events: ConnectionEvents,
) -> Result<Client, Error> {
    check_files(options, servers)?;
    let connect =
        connect_options(options, servers).max_reconnects(None).event_callback(move |event| {
            events.receive(&event);
            std::future::ready(())
        });
    match connect.connect(&servers.addresses[..]).await {
        Ok(client) => Ok(client),
        // With several servers, the error is that of any of them.
        Err(error) => Err(match refusal(options, servers).await {
            Some(refusal) => refusal,
            None => connect_error(&error, &servers.shown),
        }),
    }
}

/// Searches for a server that refuses this node by its credentials or by TLS, which waiting does not
/// change. Takes at most 4 s.
pub(crate) async fn refusal(options: &Options, servers: &Servers) -> Option<Error> {
    if let Err(error) = check_files(options, servers) {
        return Some(error);
    }
    let search = async {
        let mut refusal = None;
        for address in &servers.addresses {
            let connect = connect_options(options, servers);
            let Err(error) = connect.connect(address.clone()).await else {
                return None;
            };
            let error = connect_error(&error, address.as_url_str().trim_end_matches('/'));
            if matches!(error, Error::Unauthorized(_) | Error::Untrusted(_) | Error::Misuse(_)) {
                refusal.get_or_insert(error);
            }
        }
        refusal
    };
    timeout(DIAGNOSIS_TIMEOUT, search).await.ok().flatten()
}

/// The options of each connection. Files are read again by each, so that a renewed credential needs
/// no restart.
fn connect_options(options: &Options, servers: &Servers) -> ConnectOptions {
    let (path, login) = (options.credentials.clone(), servers.login.clone());
    let mut connect = ConnectOptions::with_auth_callback(move |nonce| {
        let credentials = match &path {
            Some(path) => Credentials::read(path),
            None => Ok(login.clone()),
        };
        let auth = credentials.and_then(|credentials| credentials.answer(&nonce));
        std::future::ready(auth.map_err(AuthError::new))
    })
    .name(format!("bine {}", options.node))
    .connection_timeout(CONNECT_TIMEOUT)
    .ping_interval(PING_INTERVAL)
    .request_timeout(Some(REQUEST_TIMEOUT));
    if let Some(path) = &options.authority {
        connect = connect.add_root_certificates(path.clone());
    }
    if let Some(certificate) = &options.certificate {
        let key = options.certificate_key.as_ref().unwrap_or(certificate);
        connect = connect.add_client_certificate(certificate.clone(), key.clone());
    }
    connect.require_tls(servers.requires_tls())
}

/// Checks the files, because the library's errors do not name them.
fn check_files(options: &Options, servers: &Servers) -> Result<(), Error> {
    if let Some(path) = &options.credentials {
        if servers.login != Credentials::Anonymous {
            return Err(Error::Misuse(
                "the URL of `cluster` and `cluster-credentials` both have credentials: remove one"
                    .to_owned(),
            ));
        }
        Credentials::read(path)?;
    }
    if let Some(path) = &options.authority {
        check_pem(path, "cluster-authority", "CERTIFICATE-----")?;
    }
    match (&options.certificate, &options.certificate_key) {
        (Some(certificate), key) => {
            check_pem(certificate, "cluster-certificate", "CERTIFICATE-----")?;
            let name =
                if key.is_some() { "cluster-certificate-key" } else { "cluster-certificate" };
            check_pem(key.as_ref().unwrap_or(certificate), name, "PRIVATE KEY-----")
        }
        (None, Some(_)) => Err(Error::Misuse(
            "`cluster-certificate-key` needs `cluster-certificate`, the certificate of the key"
                .to_owned(),
        )),
        (None, None) => Ok(()),
    }
}

/// Checks that a PEM file has a part with this label.
fn check_pem(path: &Path, key: &str, label: &str) -> Result<(), Error> {
    let shown = path.display();
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(LONGEST_FILE).read_to_string(&mut text)).map_err(
        |error| {
            Error::Misuse(format!("the file {shown} cannot be read ({error}): correct `{key}`"))
        },
    )?;
    let is_begin = |line: &str| line.starts_with("-----BEGIN ") && line.trim_end().ends_with(label);
    if text.lines().any(is_begin) {
        return Ok(());
    }
    let part = if label.starts_with("CERT") { "certificate" } else { "private key" };
    Err(Error::Misuse(format!(
        "the file {shown} has no {part} in PEM format: correct `{key}`, or add the {part}"
    )))
}

/// Describes why no connection is open. `shown` has the addresses.
fn connect_error(error: &ConnectError, shown: &str) -> Error {
    let cause = root_cause(error);
    if let Some(fault) = tls_fault(error) {
        return tls_error(fault, &cause, shown);
    }
    match error.kind() {
        // The text of `Credentials`.
        ConnectErrorKind::Authentication => {
            let text = std::error::Error::source(error).map(ToString::to_string);
            Error::Misuse(text.unwrap_or(cause))
        }
        ConnectErrorKind::AuthorizationViolation => Error::Unauthorized(format!(
            "the NATS server at {shown} rejects the credentials ({cause}): correct the user and \
             the password or the token in the URL of `cluster`, the file `cluster-credentials`, or \
             the users of the server"
        )),
        // The library reports files that it cannot use by this kind.
        ConnectErrorKind::Tls => Error::Untrusted(format!(
            "no TLS connection to {shown} can be opened ({cause}): check the files \
             `cluster-authority`, `cluster-certificate` and `cluster-certificate-key`; without \
             `cluster-authority` the system must have certificates of authorities"
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

/// Finds the failure of TLS among the causes of an error.
fn tls_fault<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(fault) = error.downcast_ref() {
            return Some(fault);
        }
        // An I/O error has its content as a source of the source, so it is opened here.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = inner.map(|inner| inner as _).or_else(|| error.source());
    }
    None
}

fn tls_error(fault: &rustls::Error, cause: &str, shown: &str) -> Error {
    use CertificateError as Certificate;
    Error::Untrusted(match fault {
        rustls::Error::InvalidCertificate(
            Certificate::Expired | Certificate::ExpiredContext { .. },
        ) => format!(
            "the certificate of the NATS server at {shown} has expired ({cause}): renew it, or correct \
             the clock of this machine"
        ),
        rustls::Error::InvalidCertificate(
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
        ) => format!(
            "the certificate of the NATS server at {shown} is for another host ({cause}): use a host \
             of the certificate in `cluster`, or issue a certificate for this one"
        ),
        rustls::Error::InvalidCertificate(_) => format!(
            "this node does not trust the certificate of the NATS server at {shown} ({cause}): name \
             the file with the certificate of its authority by `cluster-authority`"
        ),
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA,
        ) => format!(
            "the NATS server at {shown} accepts no client without a certificate that it trusts \
             ({cause}): name one that its authority has signed by `cluster-certificate`"
        ),
        rustls::Error::InvalidMessage(_) => format!(
            "the NATS server at {shown} does not use TLS ({cause}): give it a certificate in the \
             block `tls` of its configuration, or use nats:// in `cluster`"
        ),
        _ => format!(
            "no TLS connection to the NATS server at {shown} can be opened ({cause}): check the block \
             `tls` of its configuration"
        ),
    })
}

/// Parses the addresses of `options`.
pub(crate) fn servers(options: &Options) -> Result<Servers, Error> {
    address::parse(&options.servers)
}
