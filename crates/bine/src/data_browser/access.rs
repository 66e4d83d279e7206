//! The clients that may use the data browser.

use std::net::IpAddr;
use std::sync::Arc;

use bine_http::Version;
use bine_server::Incoming;

use crate::app_state::AppState;
use crate::request_session::look_at_user;
use crate::sessions::VisitorSession;
use crate::sites::without_port;
use crate::text::Text;

/// A client that may use the data browser.
#[derive(Clone, Debug)]
pub(super) struct DataViewer {
    pub(super) user: Option<Text>,
    /// Whether the client is a member of the group `administrators`. Otherwise the client uses the
    /// browser because the program is in development.
    pub(super) is_administrator: bool,
}

/// The decision about a client.
#[derive(Debug)]
pub(super) enum Admission {
    Admit(DataViewer),
    /// The client has not logged in, and an administrator can.
    RequireLogin,
    /// The client does not learn that the data browser exists.
    Hide,
}

/// The group whose members may use the data browser.
const ADMINISTRATORS: &str = "administrators";
/// Fields that a proxy adds to a request which it forwards.
const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// Decides whether a client may use the data browser.
pub(super) fn decide(request: &Incoming<'_>, app: &Arc<AppState>) -> Admission {
    // Programs with a token get rows from the program's own services: a token that leaked must not
    // export or change all tables.
    let has_token = VisitorSession::of(request).is_some_and(|own| own.credential().is_some());
    let user = look_at_user(app.sessions.as_ref(), request).filter(|_| !has_token);
    let is_member =
        |user: &str| app.guard.as_ref().is_some_and(|guard| guard.is_member(user, ADMINISTRATORS));
    let is_administrator = user.is_some_and(is_member);
    if is_administrator || app.templates.shows_causes() && is_on_this_machine(request) {
        return Admission::Admit(DataViewer { user: user.map(Text::from), is_administrator });
    }
    if app.guard.is_some() && user.is_none() { Admission::RequireLogin } else { Admission::Hide }
}

impl DataViewer {
    /// The name of the client in the audit log.
    pub(super) fn actor(&self) -> &str {
        self.user.as_deref().unwrap_or("anonymous")
    }
}

/// Whether a browser on this machine has sent the request itself. A Unix socket and a forwarded
/// request belong to a proxy, whose clients may be anywhere; a host that is not local may be a
/// foreign site whose name resolves to this machine (DNS rebinding).
fn is_on_this_machine(request: &Incoming<'_>) -> bool {
    let (head, peer) = (&request.head, request.peer);
    peer.ip().is_some_and(|ip| ip.is_loopback())
        // Browsers use HTTP/1.1; nginx forwards requests by HTTP/1.0 unless configured otherwise.
        && request.exchange.version == Version::Http11
        && FORWARDED.iter().all(|name| head.field(name).is_none())
        && head.authority().is_some_and(is_local_host)
}

/// Whether a host is this machine for every browser (RFC 6761 section 6.3).
fn is_local_host(authority: &str) -> bool {
    let host = without_port(authority);
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = host.to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod unit_tests {
    use std::borrow::Cow;

    use bine_http::{Event, Limits, Method, RequestParser};
    use bine_server::{Body, ClientAddress, Identity};

    use super::*;
    use crate::access_guard::{AccessDecision, AccessGuard, ChannelUse};
    use crate::app_state::{OwnHandler, RedirectTargets, States};
    use crate::request_session::SessionProvider;
    use crate::templates::Templates;

    /// A guard for which `ann` alone is an administrator.
    struct OneAdministrator;

    impl AccessGuard for OneAdministrator {
        fn check(
            &self,
            _path: &str,
            _request: &Incoming<'_>,
            _sessions: Option<&Arc<dyn SessionProvider>>,
        ) -> AccessDecision {
            AccessDecision::Allow
        }

        fn is_member(&self, user: &str, group: &str) -> bool {
            user == "ann" && group == ADMINISTRATORS
        }

        fn allows(&self, _user: Option<&str>, _path: &str, _method: Method) -> bool {
            true
        }

        fn check_channel(&self, _: Option<&str>, _: ChannelUse, _: &str) -> Option<bool> {
            None
        }

        fn may_use_some_channel(&self, _: Option<&str>, _: ChannelUse) -> bool {
            false
        }

        fn version(&self) -> u64 {
            1
        }

        fn compare_names(&self, _names: crate::user_name::NameComparison) {}

        fn names_user(&self, _user: &str) -> bool {
            false
        }

        fn keep_open(&self, _paths: Vec<Cow<'static, str>>) {}

        fn log_in_page(&self) -> Option<&str> {
            None
        }
    }

    const LOCAL: [u8; 4] = [127, 0, 0, 1];
    const REMOTE: [u8; 4] = [192, 0, 2, 1];

    /// The decision about a request of a user, in a program in development or not, with a guard or
    /// not.
    fn decision(
        fields: &str,
        peer: ClientAddress,
        user: Option<&str>,
        [develops, has_guard]: [bool; 2],
    ) -> String {
        request_decision(
            &format!("GET /_bine/data HTTP/1.1\r\n{fields}\r\n"),
            peer,
            user,
            [develops, has_guard],
        )
    }

    fn request_decision(
        bytes: &str,
        peer: ClientAddress,
        user: Option<&str>,
        [develops, has_guard]: [bool; 2],
    ) -> String {
        let event = RequestParser::new().receive(bytes.as_bytes(), &Limits::default()).event;
        let Event::Head(head) = event else { panic!("{bytes}") };
        let identity = &match user {
            Some(user) => Identity::Known(Arc::new(user.to_owned())),
            None => Identity::Anonymous,
        };
        let (body, has_begun, exchange) = (Body::None, false, head.exchange());
        let incoming = Incoming { head, body, peer, identity, arrival: 0, has_begun, exchange };
        let templates = Templates::default();
        templates.develop(Some(develops));
        let app = Arc::new(AppState {
            states: States::default(),
            sessions: None,
            guard: has_guard.then(|| Arc::new(OneAdministrator) as _),
            has_credentials: false,
            templates,
            may_need_request: false,
            redirect_targets: RedirectTargets::default(),
            own_handler: OwnHandler::default(),
        });
        match decide(&incoming, &app) {
            Admission::Admit(viewer) => {
                let role = if viewer.is_administrator { "administrator" } else { "developer" };
                format!("{role} {}", viewer.actor())
            }
            Admission::RequireLogin => "login".to_owned(),
            Admission::Hide => "hidden".to_owned(),
        }
    }

    fn at(address: [u8; 4]) -> ClientAddress {
        ClientAddress::tcp((address, 1).into())
    }

    const HOST: &str = "Host: localhost:8080\r\n";

    #[test]
    fn admits_administrators_from_anywhere() {
        for develops in [false, true] {
            let settings = [develops, true];
            assert_eq!(
                decision("Host: example.org\r\n", at(REMOTE), Some("ann"), settings),
                "administrator ann"
            );
            assert_eq!(decision(HOST, at(REMOTE), Some("bob"), settings), "hidden");
            assert_eq!(decision(HOST, at(REMOTE), None, settings), "login");
        }
        // Without a guard, no user is an administrator.
        assert_eq!(decision(HOST, at(REMOTE), Some("ann"), [true, false]), "hidden");
    }

    #[test]
    fn admits_clients_on_this_machine_in_development() {
        let develops = [true, false];
        assert_eq!(decision(HOST, at(LOCAL), None, develops), "developer anonymous");
        assert_eq!(decision(HOST, at(LOCAL), Some("bob"), [true, true]), "developer bob");
        assert_eq!(decision(HOST, at(LOCAL), None, [false, false]), "hidden");
        assert_eq!(decision(HOST, at(REMOTE), None, develops), "hidden");
    }

    #[test]
    fn hides_from_clients_that_only_seem_local() {
        let develops = [true, false];
        let hidden = |fields: &str, peer| {
            assert_eq!(decision(fields, peer, None, develops), "hidden", "{fields}");
        };
        // A proxy on this machine, on a Unix socket or a loopback address.
        hidden(HOST, ClientAddress::UNIX);
        for field in FORWARDED {
            hidden(&format!("{HOST}{field}: for=192.0.2.1\r\n"), at(LOCAL));
        }
        let old = format!("GET / HTTP/1.0\r\n{HOST}\r\n");
        assert_eq!(request_decision(&old, at(LOCAL), None, develops), "hidden");
        // A foreign site whose name resolves to this machine.
        hidden("Host: evil.example:8080\r\n", at(LOCAL));
    }

    #[test]
    fn accepts_only_hosts_of_this_machine() {
        for local in ["localhost", "LOCALHOST:80", "a.localhost:1", "127.0.0.1:8080", "[::1]:80"] {
            assert!(is_local_host(local), "{local}");
        }
        for other in
            ["", "example.org", "localhost.example", "10.0.0.1", "127.0.0.1.example", "[::2]", "::"]
        {
            assert!(!is_local_host(other), "{other}");
        }
    }
}
