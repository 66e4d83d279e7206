//! The addresses of nodes: consecutive ports, or free ones.

use std::net::{SocketAddr, TcpListener};

/// The addresses of nodes, and that of their NATS server.
#[derive(Debug)]
pub(super) struct Addresses {
    /// One for each node, as the option `--listen` takes it.
    pub(super) nodes: Vec<String>,
    pub(super) nats: SocketAddr,
}

impl Addresses {
    /// Chooses the addresses of `count` nodes from that of the first one, and checks that all are free
    /// now.
    ///
    /// # Errors
    ///
    /// A message that names the correction.
    pub(super) fn choose(listen: &str, count: u8) -> Result<Self, String> {
        let (address, options) = match listen.split_once(',') {
            Some((address, options)) => (address, format!(",{options}")),
            None => (listen, String::new()),
        };
        let wrong = || {
            format!(
                "--listen {listen}: several nodes need HOST:PORT, such as 127.0.0.1:8080 or localhost:0"
            )
        };
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        let host = match host {
            "" | "*" => "[::]",
            "localhost" => "127.0.0.1",
            host => host,
        };
        let first: SocketAddr = format!("{host}:{port}").parse().map_err(|_| wrong())?;
        let mut nodes = Vec::new();
        // All stay open until all are chosen, so that no port is chosen twice.
        let mut open = Vec::new();
        for number in 0..u16::from(count) {
            let mut own = first;
            if first.port() != 0 {
                let port = first.port().checked_add(number);
                own.set_port(port.ok_or_else(|| {
                    format!("--listen {listen}: {count} nodes need {count} ports up to 65535; choose a lower one")
                })?);
            }
            let (listener, own) = reserve(own)?;
            open.push(listener);
            nodes.push(format!("{own}{options}"));
        }
        let (listener, nats) = reserve(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        drop((open, listener));
        Ok(Self { nodes, nats })
    }
}

fn reserve(address: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let cannot = |error| {
        format!(
            "cannot listen on {address} ({error}): choose different ports by --listen HOST:PORT, or free ones by --listen 127.0.0.1:0"
        )
    };
    let listener = TcpListener::bind(address).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    Ok((listener, address))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn chooses_a_free_port_for_each_node() {
        let Addresses { nodes, nats } = Addresses::choose("localhost:0,backlog=9", 4).unwrap();
        let address = |node: &String| node.strip_suffix(",backlog=9").unwrap().parse().unwrap();
        let mut all: BTreeSet<SocketAddr> = nodes.iter().map(address).collect();
        all.insert(nats);
        assert_eq!(all.len(), 5);
        assert!(all.iter().all(|address| address.port() != 0));
    }

    #[test]
    fn names_the_correction_of_an_address() {
        let fault = |listen: &str, count| Addresses::choose(listen, count).unwrap_err();
        for listen in ["unix:/a", "nowhere", "example.org:80", "127.0.0.1", ":x", ""] {
            assert!(fault(listen, 2).contains("several nodes need HOST:PORT"), "{listen}");
        }
        assert!(fault("127.0.0.1:65535", 2).contains("choose a lower one"));
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = taken.local_addr().unwrap().to_string();
        assert!(fault(&taken, 1).contains("choose different ports by --listen"));
    }
}
