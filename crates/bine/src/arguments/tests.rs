//! Tests which request dependencies the extraction of arguments records.

use std::sync::Arc;

use bine_http::{Event, Limits, RequestParser};
use bine_server::{Body, ClientAddress, Identity, Incoming};

use crate::app_state::{AppState, OwnHandler, RedirectTargets, States};
use crate::arguments::{Cookie, FromRequest, Header, Query, RequestParts};
use crate::channels::Credentials;
use crate::request::Request;
use crate::templates::Templates;
use crate::text::Text;
use crate::trace::RequestDependency;
use crate::trace::testing::dependencies_of;

fn dependencies_of_argument<A: FromRequest>(name: &'static str) -> Vec<RequestDependency> {
    let bytes = b"GET /?a=b HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\n\r\n";
    let Event::Head(head) = RequestParser::new().receive(bytes, &Limits::default()).event else {
        panic!("it is a request");
    };
    let (body, peer, identity) =
        (Body::None, ClientAddress::tcp(([127, 0, 0, 1], 1).into()), &Identity::Anonymous);
    let (has_begun, exchange) = (false, head.exchange());
    let incoming = Incoming { head, body, peer, identity, arrival: 0, has_begun, exchange };
    let app = Arc::new(AppState {
        states: States::default(),
        sessions: None,
        guard: None,
        has_credentials: false,
        templates: Templates::default(),
        may_need_request: false,
        redirect_targets: RedirectTargets::default(),
        own_handler: OwnHandler::default(),
    });
    let mut arguments = RequestParts::of(&app, &incoming);
    dependencies_of(|| assert!(A::from_request(&mut arguments, name).is_ok()))
}

#[test]
fn records_request_parts_that_differ_between_clients() {
    assert_eq!(dependencies_of_argument::<Cookie<Text>>("a"), [RequestDependency::Cookie("a")]);
    // A missing cookie is information too.
    assert_eq!(
        dependencies_of_argument::<Cookie<Option<Text>>>("b"),
        [RequestDependency::Cookie("b")]
    );
    assert_eq!(
        dependencies_of_argument::<Header<Option<Text>>>("user_agent"),
        [RequestDependency::Header("user_agent")]
    );
    assert_eq!(
        dependencies_of_argument::<Request>("request"),
        [RequestDependency::Whole, RequestDependency::User]
    );
    assert_eq!(
        dependencies_of_argument::<Credentials>("asked"),
        [RequestDependency::Whole, RequestDependency::User]
    );
    // The address is the same for all clients that request it.
    assert_eq!(dependencies_of_argument::<Query<Text>>("a"), []);
}
