//! Decides how it is known what a run of a page has looked at of whoever asks: each look passes through here.

use crate::live::Run;

/// What a page has looked at. What it answers may differ for whoever differs in this.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Looked {
    /// Who has logged in, and nothing else of the session.
    User,
    /// The session, of which there may be many of one user.
    Session,
    /// A cookie of this name.
    Cookie(&'static str),
    /// A field of this name, as an argument has it: `user_agent`.
    Header(&'static str),
    /// A field that a filter or a service has asked for, or another of its sort.
    Filtered,
    /// The whole request.
    Whole,
}

impl Looked {
    /// Notes it with the run that goes on in this thread, if there is one: what it has looked at, and what it has seen.
    pub(crate) fn note(self, seen: impl FnOnce() -> Vec<u8>) {
        self.note_for(Run::current().as_deref(), seen);
    }

    /// The same for a run that may go on in any thread.
    pub(crate) fn note_for(self, run: Option<&Run>, seen: impl FnOnce() -> Vec<u8>) {
        if let Some(run) = run {
            run.look(self, seen().into());
        }
        #[cfg(test)]
        testing::NOTED.with_borrow_mut(|noted| noted.push(self));
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::cell::RefCell;

    use super::Looked;

    thread_local! {
        pub(super) static NOTED: RefCell<Vec<Looked>> = const { RefCell::new(Vec::new()) };
    }

    /// What `run` looks at, in order.
    pub(crate) fn looks_of(run: impl FnOnce()) -> Vec<Looked> {
        NOTED.take();
        run();
        NOTED.take()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bine_http::{Event, Limits, Machine};
    use bine_pipeline::{Body, Incoming, Peer, Who};

    use super::Looked;
    use super::testing::looks_of;
    use crate::arguments::{Argument, Arguments, Cookie, Header, Query, States};
    use crate::channels::Asked;
    use crate::live::Live;
    use crate::look::Look;
    use crate::metrics::Health;
    use crate::request::Request;
    use crate::route::{House, Places};
    use crate::service::Rule;
    use crate::tables::Tables;
    use crate::text::Text;

    fn look_of<A: Argument>(name: &'static str) -> Vec<Looked> {
        let bytes = b"GET /?a=b HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\n\r\n";
        let Event::Head(head) = Machine::new().receive(bytes, &Limits::default()).event else {
            panic!("it is a request");
        };
        let (body, peer, who) =
            (Body::None, Peer::tcp(([127, 0, 0, 1], 1).into()), &Who::Anonymous);
        let (has_begun, exchange) = (false, head.exchange());
        let incoming = Incoming { head, body, peer, who, arrival: 0, has_begun, exchange };
        let (states, tables) = (States::default(), Tables::default());
        let (look, live) = (Look::default(), Arc::new(Live::new(&[], false)));
        let (places, services_for) = (Places::default(), Rule::ANYONE);
        let house = House {
            states,
            tables,
            channels: None,
            sessions: None,
            look,
            services_for,
            live,
            places,
            health: Health::default(),
        };
        let house = Arc::new(house);
        let mut arguments: Arguments<'_> = house.arguments(&incoming);
        looks_of(|| assert!(A::take(&mut arguments, name).is_ok()))
    }

    #[test]
    fn what_tells_visitors_apart_is_noted_as_it_is_taken() {
        assert_eq!(look_of::<Cookie<Text>>("a"), [Looked::Cookie("a")]);
        // That there is none tells something too.
        assert_eq!(look_of::<Cookie<Option<Text>>>("b"), [Looked::Cookie("b")]);
        assert_eq!(look_of::<Header<Option<Text>>>("user_agent"), [Looked::Header("user_agent")]);
        assert_eq!(look_of::<Request>("request"), [Looked::Whole, Looked::User]);
        assert_eq!(look_of::<Asked>("asked"), [Looked::Whole, Looked::User]);
        // Whoever asks for the same address asks the same.
        assert_eq!(look_of::<Query<Text>>("a"), []);
    }
}
