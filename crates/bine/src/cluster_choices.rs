//! The configuration keys of a cluster. Programs without the feature have them too, to name the
//! feature in an error.

use std::path::PathBuf;
use std::time::Duration;

use crate::configuration::values::bytes;
use crate::configuration::{Configuration, Key, KeyGroup, Kind};

/// The settings for several nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ClusterChoices {
    /// The addresses of NATS servers; `None`: the program runs on one machine.
    pub(crate) servers: Option<String>,
    /// The name of the stream.
    pub(crate) name: Option<String>,
    /// The name of this node.
    pub(crate) node: Option<String>,
    /// The number of servers that store each change.
    pub(crate) copies: Option<u8>,
    /// The file of credentials.
    pub(crate) credentials: Option<PathBuf>,
    /// The certificates of authorities to trust.
    pub(crate) authority: Option<PathBuf>,
    /// The certificate that this node shows.
    pub(crate) certificate: Option<PathBuf>,
    /// The private key of the certificate.
    pub(crate) certificate_key: Option<PathBuf>,
    /// Bytes of changes after which a snapshot is due.
    pub(crate) snapshot: Option<u64>,
}

inventory::submit! {
    KeyGroup { keys: KEYS, after: "sync", rank: 50, adds_content: |_| false }
}

/// How long a node that is told to stop serves on, so that load balancers stop sending. A balancer
/// that checks each second, as the guide shows, needs two seconds.
const LEAVE_TIME: Duration = Duration::from_secs(5);

static KEYS: &[Key] = &[
    Key::server("cluster", "URL[,URL]...", &[], "share tables, channels and sessions with other nodes by these NATS servers: nats://10.0.0.1:4222", |c, v| {
        if cfg!(not(feature = "cluster")) {
            return Err("this program is built without clusters: enable the feature `cluster` of `bine`".to_owned());
        }
        choices(c).servers = Some(v.to_owned());
        // Whatever the order of both keys, `leave-time` has precedence.
        c.settings.timeouts.leave.get_or_insert(LEAVE_TIME);
        Ok(())
    })
    .fixed(),
    Key::server("cluster-name", "NAME", &["bine"], "the name of the cluster's stream, the same on all nodes", |c, v| {
        choices(c).name = Some(v.to_owned());
        Ok(())
    })
    .fixed(),
    Key::server("cluster-node", "NAME", &[], "the name of this node; default: the name of the machine and the number of the process", |c, v| {
        choices(c).node = Some(v.to_owned());
        Ok(())
    })
    .fixed(),
    Key::server("cluster-copies", "N", &["1"], "NATS servers that store each change before it is acknowledged: 1, 3 or 5", |c, v| {
        let copies = match v {
            "1" => 1,
            "3" => 3,
            "5" => 5,
            _ => return Err("1, 3 or 5".to_owned()),
        };
        choices(c).copies = Some(copies);
        Ok(())
    })
    .fixed(),
    Key::server("cluster-credentials", "FILE", &[], "the credentials for the NATS servers: a .creds file, or one line with user:password, a token or the seed of an nkey", |c, v| {
        choices(c).credentials = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path)
    .fixed(),
    Key::server("cluster-authority", "FILE", &[], "certificates of authorities to trust for the NATS servers, in place of those of the system (PEM)", |c, v| {
        choices(c).authority = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path)
    .fixed(),
    Key::server("cluster-certificate", "FILE", &[], "the certificate that this node shows to the NATS servers (PEM)", |c, v| {
        choices(c).certificate = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path)
    .fixed(),
    Key::server("cluster-certificate-key", "FILE", &[], "the private key of cluster-certificate; default: in the same file (PEM)", |c, v| {
        choices(c).certificate_key = Some(v.into());
        Ok(())
    })
    .kind(Kind::Path)
    .fixed(),
    Key::server("cluster-snapshot", "BYTES", &["64M"], "write a snapshot after this many bytes of changes", |c, v| {
        choices(c).snapshot = Some(bytes(v)?);
        Ok(())
    })
    .fixed(),
];

fn choices(configuration: &mut Configuration) -> &mut ClusterChoices {
    configuration.choice_mut()
}
