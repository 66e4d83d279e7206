//! The hosts of requests that may become hosts of links in mails: those that no client can choose for
//! the link of another user.

use bine_server::Address;

use crate::configuration::Configuration;
use crate::hosts::{HostChoice, is_local, is_loopback};
use crate::sites::{HostPattern, without_port};

/// The hosts that links in mails may have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TrustedHosts {
    /// Any client can choose the host.
    None,
    /// The hosts of the key `hosts`.
    Named(Vec<HostPattern>),
    /// Those of the certificates: the server rejects other names of the internet. It answers to IP
    /// addresses and names without a dot too, which a client can choose.
    Certified,
    /// The names of this machine: the server is for its own users.
    Loopback,
}

impl TrustedHosts {
    /// The hosts of a server with this configuration.
    pub(super) fn of(configuration: &Configuration) -> Self {
        let is_loopback = |address: &Address| match address {
            Address::Tcp(address) => address.ip().is_loopback(),
            Address::Unix(_) => true,
            Address::Inherited(_) => false,
        };
        let listeners = &configuration.settings.listeners;
        match &configuration.hosts {
            HostChoice::Only(names) => Self::Named(names.clone()),
            HostChoice::Auto if configuration.tls != "off" => Self::Certified,
            HostChoice::Auto if listeners.iter().all(|one| is_loopback(&one.address)) => {
                Self::Loopback
            }
            HostChoice::Any | HostChoice::Auto => Self::None,
        }
    }

    /// Whether this host, which may have a port, is trusted.
    pub(super) fn contain(&self, host: &str) -> bool {
        let host = without_port(host);
        match self {
            Self::None => false,
            Self::Named(names) => names.iter().any(|name| name.fit(host).is_some()),
            Self::Certified => !is_local(host) || is_loopback(host),
            Self::Loopback => is_loopback(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contain_no_host_that_a_client_can_choose() {
        let named = TrustedHosts::Named(vec![HostPattern::parse("intranet").unwrap()]);
        for (hosts, right, wrong) in [
            (TrustedHosts::None, "", "localhost"),
            (named, "intranet:8080", "203.0.113.9"),
            (TrustedHosts::Certified, "a.example", "203.0.113.9"),
            (TrustedHosts::Certified, "localhost:8443", "attacker"),
            (TrustedHosts::Loopback, "127.0.0.1:8080", "[2001:db8::1]:80"),
            (TrustedHosts::Loopback, "[::1]:8080", "a.example"),
        ] {
            assert!(right.is_empty() || hosts.contain(right), "{hosts:?} {right}");
            assert!(!hosts.contain(wrong), "{hosts:?} {wrong}");
        }
    }
}
