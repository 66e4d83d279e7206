//! The connection to the servers, and the checks of the servers and of the stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::connection::State;
use async_nats::jetstream::context::{ContextBuilder, CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{Context, ErrorCode};
use tokio::sync::watch;

use crate::backoff::Backoff;
use crate::connector::{self, ConnectionEvents, REQUEST_TIMEOUT};
use crate::error::{Error, root_cause};
use crate::options::Options;

/// The time until a published message must be acknowledged.
pub(crate) const ACK_TIMEOUT: Duration = Duration::from_secs(5);
/// The time in which a new stream must exist: servers that have just started elect a leader first.
const CREATION_TIMEOUT: Duration = Duration::from_secs(15);
/// The first version with all that this crate uses.
const OLDEST_SERVER: (i64, i64, i64) = (2, 12, 0);

/// An open connection with a checked stream.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// JetStream with the short timeout, for requests.
    pub(crate) requests: Context,
    /// JetStream with the longer timeout, for messages.
    pub(crate) publishing: Context,
    pub(crate) stream: stream::Stream,
    /// The name of the stream.
    pub(crate) name: String,
    /// The subject of all messages.
    pub(crate) subject: String,
    pub(crate) replicas: usize,
    /// Counts closed connections.
    pub(crate) losses: watch::Receiver<u64>,
    pub(crate) events: ConnectionEvents,
    options: Arc<Options>,
}

impl Connection {
    /// Connects, and creates the stream if it is missing.
    pub(crate) async fn open(options: &Options) -> Result<Self, Error> {
        options.check()?;
        let servers = connector::servers(options)?;
        let events = ConnectionEvents::default();
        let client = connector::connect(options, &servers, events.clone()).await?;
        check_version(&client)?;
        let context = |timeout| ContextBuilder::new().timeout(timeout).build(client.clone());
        let requests = context(REQUEST_TIMEOUT);
        let subject = format!("{}.log", options.name);
        let stream = open_stream(&requests, options, &subject, &events).await?;
        Ok(Self {
            publishing: context(ACK_TIMEOUT),
            requests,
            stream,
            name: options.name.clone(),
            subject,
            replicas: options.replicas,
            losses: events.losses.subscribe(),
            events,
            options: Arc::new(options.clone()),
            client,
        })
    }

    /// Identifies the stream: a stream that is deleted and created again has a different id.
    pub(crate) fn stream_id(&self) -> u64 {
        stream_id(self.stream.cached_info())
    }

    /// Returns the name of the server that leads the stream.
    pub(crate) async fn leader(&self) -> Result<Option<String>, Error> {
        let info = self.stream.get_info().await.map_err(|error| {
            Error::Server(format!("the stream does not answer: {}", root_cause(&error)))
        })?;
        Ok(info.cluster.and_then(|cluster| cluster.leader))
    }

    /// Returns the position of the last message, also of one that is purged.
    pub(crate) async fn last(&self) -> Result<u64, Error> {
        let info = self.stream.get_info().await.map_err(|error| {
            Error::Server(format!("the stream does not answer: {}", root_cause(&error)))
        })?;
        Ok(info.state.last_sequence)
    }

    /// Opens a second connection for a moment, to learn why the first one cannot be opened again.
    /// Returns a reason that an operator must remove. Takes at most 4 s.
    pub(crate) async fn refusal(&self) -> Option<Error> {
        let servers = connector::servers(&self.options).ok()?;
        connector::refusal(&self.options, &servers).await
    }

    /// Whether a connection is open now.
    pub(crate) fn is_open(&self) -> bool {
        self.client.connection_state() == State::Connected
    }
}

/// The time of the stream's creation in nanoseconds, which fits until the year 2554.
pub(crate) fn stream_id(info: &stream::Info) -> u64 {
    info.created.unix_timestamp_nanos().unsigned_abs() as u64
}

fn check_version(client: &Client) -> Result<(), Error> {
    let (major, minor, patch) = OLDEST_SERVER;
    let version = client.server_info().version;
    if is_at_least(&version, OLDEST_SERVER) {
        return Ok(());
    }
    Err(Error::Unsuitable(format!(
        "the NATS server has version {version}: install {major}.{minor}.{patch} or a newer one"
    )))
}

/// Whether a version such as `2.12.0-beta.1` is not older than `oldest`. An unreadable one is.
fn is_at_least(version: &str, oldest: (i64, i64, i64)) -> bool {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    let mut parts = release.split('.').map(str::parse::<i64>);
    let mut part = || parts.next().and_then(Result::ok);
    match (part(), part(), part()) {
        (Some(major), Some(minor), Some(patch)) => (major, minor, patch) >= oldest,
        _ => false,
    }
}

/// Opens the stream, or creates it. Retries while the servers elect a leader.
async fn open_stream(
    context: &Context,
    options: &Options,
    subject: &str,
    events: &ConnectionEvents,
) -> Result<stream::Stream, Error> {
    let deadline = Instant::now() + CREATION_TIMEOUT;
    let mut backoff = Backoff::new();
    loop {
        let error = match context.get_stream(&options.name).await {
            Ok(stream) => {
                check_stream(&stream.cached_info().config, options, subject)?;
                return Ok(stream);
            }
            Err(error) => {
                if let GetStreamErrorKind::JetStream(missing) = error.kind()
                    && missing.error_code() == ErrorCode::STREAM_NOT_FOUND
                    && !options.creates
                {
                    let name = &options.name;
                    return Err(Error::Unsuitable(format!(
                        "the NATS server has no cluster `{name}`: correct the address or the name"
                    )));
                }
                root_cause(&error)
            }
        };
        if let Some(denied) = events.take_denial() {
            return Err(denied);
        }
        if !options.creates {
            if Instant::now() >= deadline {
                let name = &options.name;
                return Err(Error::Server(format!(
                    "the stream `{name}` cannot be opened ({error}): check that the NATS servers run"
                )));
            }
            backoff.wait().await;
            continue;
        }
        let error = match context.create_stream(stream_config(options, subject)).await {
            Ok(stream) => {
                check_stream(&stream.cached_info().config, options, subject)?;
                return Ok(stream);
            }
            Err(failure) => {
                if let CreateStreamErrorKind::JetStream(failure) = failure.kind() {
                    check_answer(failure.error_code(), options.replicas)?;
                }
                if failure.kind() == CreateStreamErrorKind::TimedOut {
                    error
                } else {
                    root_cause(&failure)
                }
            }
        };
        if Instant::now() >= deadline {
            let name = &options.name;
            return Err(Error::Server(format!(
                "the stream `{name}` cannot be opened or created ({error}): start the NATS server \
                 with `--jetstream`, and check that {} of its servers run",
                options.replicas
            )));
        }
        backoff.wait().await;
    }
}

/// Rejects answers that waiting does not change.
fn check_answer(code: ErrorCode, replicas: usize) -> Result<(), Error> {
    let text = match code {
        ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => {
            "the NATS server has no JetStream: start it with `nats-server --jetstream`, and allow \
             JetStream for the account"
                .to_owned()
        }
        ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED => {
            format!(
                "one NATS server cannot store {replicas} replicas: start a cluster of {replicas} \
                 servers, or use 1 replica"
            )
        }
        ErrorCode::STREAM_SUBJECT_OVERLAP => {
            "another stream of the NATS server has the same subject: give the cluster another name"
                .to_owned()
        }
        _ => return Ok(()),
    };
    Err(Error::Unsuitable(text))
}

fn stream_config(options: &Options, subject: &str) -> stream::Config {
    stream::Config {
        name: options.name.clone(),
        description: Some("the log of a Bine cluster".to_owned()),
        subjects: vec![subject.to_owned()],
        retention: RetentionPolicy::Limits,
        max_messages: -1,
        max_bytes: -1,
        max_messages_per_subject: -1,
        max_consumers: -1,
        max_message_size: -1,
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        num_replicas: options.replicas,
        allow_direct: true,
        duplicate_window: Duration::from_mins(2),
        ..stream::Config::default()
    }
}

/// Checks that a stream keeps every message until a snapshot replaces it.
fn check_stream(config: &stream::Config, options: &Options, subject: &str) -> Result<(), Error> {
    let problem = if config.subjects != [subject] {
        format!("its subjects are {:?}, not {subject:?}", config.subjects)
    } else if config.retention != RetentionPolicy::Limits {
        "its retention is not `limits`".to_owned()
    } else if config.storage != StorageType::File {
        "it stores messages in memory, not in files".to_owned()
    } else if config.max_messages > 0
        || config.max_bytes > 0
        || config.max_messages_per_subject > 0
        || config.max_message_size > 0
        || !config.max_age.is_zero()
    {
        "it has a limit of messages, bytes, size or age".to_owned()
    } else if config.discard != DiscardPolicy::New {
        "it discards old messages when it is full".to_owned()
    } else if config.no_ack || config.sealed || config.deny_purge || config.mirror.is_some() {
        "it sends no acknowledgments, or is sealed, a mirror, or cannot be purged".to_owned()
    } else if config.sources.as_ref().is_some_and(|sources| !sources.is_empty()) {
        "it copies messages of other streams".to_owned()
    } else if config.num_replicas < options.replicas {
        format!(
            "it has {} replicas, fewer than {} (`nats stream edit {} --replicas {}`)",
            config.num_replicas, options.replicas, options.name, options.replicas
        )
    } else {
        return Ok(());
    };
    Err(Error::Unsuitable(format!(
        "the stream `{}` exists, but {problem}: correct the stream, or give the cluster another name",
        options.name
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_versions_of_servers() {
        for version in ["2.12.0", "2.15.1", "3.0.0", "2.12.0-beta.1", "2.12.3+build"] {
            assert!(is_at_least(version, OLDEST_SERVER), "{version}");
        }
        for version in ["2.11.9", "1.99.99", "", "2", "2.x.1", "2.12"] {
            assert!(!is_at_least(version, OLDEST_SERVER), "{version}");
        }
    }

    #[test]
    fn accepts_its_own_stream_and_rejects_lossy_ones() {
        let options = Options::new("a", "a");
        let good = stream_config(&options, "bine.log");
        assert_eq!(check_stream(&good, &options, "bine.log"), Ok(()));
        let bad = [
            stream::Config { subjects: vec!["a".to_owned()], ..good.clone() },
            stream::Config { retention: RetentionPolicy::WorkQueue, ..good.clone() },
            stream::Config { storage: StorageType::Memory, ..good.clone() },
            stream::Config { max_age: Duration::from_secs(1), ..good.clone() },
            stream::Config { max_messages: 1, ..good.clone() },
            stream::Config { discard: DiscardPolicy::Old, ..good.clone() },
            stream::Config { num_replicas: 0, ..good.clone() },
            stream::Config { deny_purge: true, ..good },
        ];
        for config in bad {
            assert!(check_stream(&config, &options, "bine.log").is_err(), "{config:?}");
        }
    }
}
