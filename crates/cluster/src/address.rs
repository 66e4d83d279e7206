//! The list of servers: addresses, and the credentials in them.

use async_nats::ServerAddr;

use crate::credentials::Credentials;
use crate::error::Error;

/// The parsed list of servers.
pub(crate) struct Servers {
    /// The addresses as async-nats takes them, without credentials.
    pub(crate) addresses: Vec<ServerAddr>,
    /// The addresses for messages to people, without credentials.
    pub(crate) shown: String,
    /// The credentials of the first URL that has some.
    pub(crate) login: Credentials,
}

impl Servers {
    /// Whether a URL asks for TLS. Then each connection must use it: otherwise the credentials might be
    /// sent in the clear to another server of the list.
    pub(crate) fn requires_tls(&self) -> bool {
        self.addresses.iter().any(ServerAddr::tls_required)
    }
}

/// Parses URLs that are separated by commas.
pub(crate) fn parse(list: &str) -> Result<Servers, Error> {
    let mut servers =
        Servers { addresses: Vec::new(), shown: String::new(), login: Credentials::Anonymous };
    for text in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        // The text itself may contain a password, so messages show only what follows `@`.
        let (scheme, rest) = text.split_once("://").unwrap_or(("nats", text));
        let (login, host) = match rest.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, rest),
        };
        let shown = format!("{scheme}://{host}");
        if scheme != "nats" && scheme != "tls" {
            return Err(Error::Misuse(format!(
                "the server {shown} has the scheme `{scheme}`: use nats:// or tls://"
            )));
        }
        let address = parse_address(&shown)?;
        if let (Some(login), Credentials::Anonymous) = (login, &servers.login) {
            servers.login = match login.split_once(':') {
                Some((user, password)) => Credentials::Password {
                    user: percent_decoded(user, &shown)?,
                    password: percent_decoded(password, &shown)?,
                },
                None => Credentials::Token(percent_decoded(login, &shown)?),
            };
        }
        if !servers.shown.is_empty() {
            servers.shown.push_str(", ");
        }
        servers.shown.push_str(&shown);
        servers.addresses.push(address);
    }
    if servers.addresses.is_empty() {
        return Err(Error::Misuse("no server is given: use nats://host:4222".to_owned()));
    }
    Ok(servers)
}

fn parse_address(shown: &str) -> Result<ServerAddr, Error> {
    let address = shown.parse::<ServerAddr>().ok();
    address.filter(|address| !address.host().is_empty()).ok_or_else(|| {
        Error::Misuse(format!("the server {shown} is not a URL: use nats://host:4222"))
    })
}

fn percent_decoded(text: &str, shown: &str) -> Result<String, Error> {
    let broken = || {
        Error::Misuse(format!(
            "the credentials in the URL of {shown} have a `%` without two hexadecimal digits: \
             write `%25` for a percent sign"
        ))
    };
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(broken()) };
        decoded.push((high * 16 + low) as u8);
    }
    String::from_utf8(decoded).map_err(|_| broken())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_several_servers_and_their_credentials() {
        check("nats://a:1, tls://b", "nats://a:1, tls://b", &Credentials::Anonymous);
        check("a:1", "nats://a:1", &Credentials::Anonymous);
        check("nats://secret@a", "nats://a", &Credentials::Token("secret".to_owned()));
        let login = Credentials::Password { user: "u".to_owned(), password: "p@:%".to_owned() };
        check("nats://a,nats://u:p@%3A%25@b", "nats://a, nats://b", &login);
    }

    #[test]
    fn rejects_what_is_no_server() {
        for list in ["", " , ", "http://a", "nats://", "nats://u:%4@a", "nats://a:b"] {
            assert!(parse(list).is_err(), "{list}");
        }
    }

    #[test]
    fn shows_no_password_in_errors() {
        for list in ["http://u:secret@a", "nats://u:secret%@a", "nats://u:secret@:x"] {
            let error = parse(list).map(|_| ()).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    fn check(list: &str, shown: &str, login: &Credentials) {
        let servers = parse(list).unwrap();
        assert_eq!((&*servers.shown, &servers.login), (shown, login));
    }
}
