//! The options of a cluster, and their checks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::Error;

/// The longest name of a cluster or a node: part of the names of streams and subjects.
const LONGEST_NAME: usize = 64;

/// The servers, the stream, and what this node reports about itself.
#[derive(Debug, Clone)]
pub struct Options {
    /// URLs of NATS servers, separated by commas: `nats://host:4222` or `tls://host:4222`. A URL may
    /// contain `user:password@` or `token@`.
    pub servers: String,
    /// The name of the cluster, `bine` by default. The streams and buckets of the cluster begin with
    /// it.
    pub name: String,
    /// The number of servers that store each message: 1, 3 or 5.
    pub replicas: usize,
    /// A file of credentials: a `.creds` file, as the operator of a NATS server issues it, or one line
    /// with `user:password`, a token, or the seed of a user's nkey. It is read again for each
    /// connection.
    pub credentials: Option<PathBuf>,
    /// A PEM file with the certificates of authorities to trust, in place of those of the system.
    pub authority: Option<PathBuf>,
    /// A PEM file with the certificate that this node shows to a server, with its chain.
    pub certificate: Option<PathBuf>,
    /// A PEM file with the private key of `certificate`; `None`: it is in the same file.
    pub certificate_key: Option<PathBuf>,
    /// The name of this node, unique in the cluster: letters, digits, `-` and `_`.
    pub node: String,
    /// What this node reports about itself.
    pub details: NodeDetails,
    /// Whether a missing stream is created; true by default.
    pub creates: bool,
}

/// What a node reports about itself to the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeDetails {
    /// The name for people.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// The addresses at which the node serves.
    pub addresses: Vec<String>,
    /// Whether the node is going to stop and serves on until then.
    pub is_leaving: bool,
    /// Measures of the load, as text.
    pub load: BTreeMap<String, String>,
}

impl Options {
    /// Options for the node `node` and the given servers, with one replica.
    pub fn new(servers: impl Into<String>, node: impl Into<String>) -> Self {
        Self {
            servers: servers.into(),
            name: "bine".to_owned(),
            replicas: 1,
            credentials: None,
            authority: None,
            certificate: None,
            certificate_key: None,
            node: node.into(),
            details: NodeDetails::default(),
            creates: true,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_name("the name of the cluster", &self.name)?;
        check_name("the name of the node", &self.node)?;
        if ![1, 3, 5].contains(&self.replicas) {
            let replicas = self.replicas;
            return Err(Error::Misuse(format!("{replicas} replicas: use 1, 3 or 5")));
        }
        Ok(())
    }
}

/// Checks that a text can be part of a stream's name, of a subject and of a key.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Error> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_allowed) {
        return Err(Error::Misuse(format!(
            "{what} is {name:?}: use 1 to {LONGEST_NAME} letters, digits, `-` and `_`"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_names_that_are_syntax_of_subjects() {
        for name in ["", "a.b", "a b", "*", ">", &"a".repeat(65)] {
            assert!(check_name("the name", name).is_err(), "{name}");
        }
        assert_eq!(check_name("the name", "Bine_1-a"), Ok(()));
    }

    #[test]
    fn rejects_a_number_of_replicas_that_has_no_majority() {
        let mut options = Options::new("nats://127.0.0.1:4222", "a");
        assert_eq!(options.check(), Ok(()));
        options.replicas = 2;
        assert_eq!(options.check().unwrap_err().to_string(), "2 replicas: use 1, 3 or 5");
    }
}
