//! Decides how a channel is made that has no name yet, and how long one stays that is renewed (document 004 section 3.3).

use bine_http::{Reply, Status};
use bine_push::{Applied, ChannelInfo, ChannelName, Command, Durability, Expiry, Settings};
use bine_server::{Answer, Clock, Incoming, Outgoing};

use super::{
    FRESH, No, ROOT, Resource, USUAL, address, asked, body_of, instant, put_safety, put_state,
};

/// What nobody knows by a name that they have given is forgotten a day after the last publication, in milliseconds,
/// unless its maker says otherwise.
const UNNAMED: Expiry = Expiry::AfterPublish(24 * 60 * 60 * 1000);

impl Resource<'_> {
    /// Makes a channel under a name that nobody guesses, and tells it with its end.
    pub(super) fn create_unnamed(
        &self,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, No> {
        let head = &request.head;
        if head.field("Stream-Forked-From").is_some() {
            return Err("a fork has a name: make it by PUT".into());
        }
        let kind = head.field_text("Content-Type").map(str::trim).filter(|kind| !kind.is_empty());
        let kind = kind.unwrap_or(USUAL);
        let settings = Settings {
            content_type: Some(kind.into()),
            retention: asked::retention(head)?.unwrap_or_default(),
            expiry: asked::expiry(head, Expiry::AfterPublish)?.unwrap_or(UNNAMED),
            durability: asked::durability(head)?.unwrap_or(Durability::Commit),
        };
        let first = asked::drafts(&"".into(), kind, body_of(request))?;
        if let Err(denied) = self.visitor.spend(first.len().max(1)) {
            return Ok(denied.answer(out.buffer, request.exchange, &clock.date()));
        }
        let mut bits = [0; 16];
        bine_store::disk::random(&mut bits);
        let order = Command::Create {
            name: ChannelName::Random(u128::from_le_bytes(bits)),
            settings,
            fork: None,
            first,
            is_closed: asked::closes(head),
        };
        let root = address(request, ROOT);
        Ok(self.carry_out(order, request.exchange, clock, move |out, exchange, date, done| {
            let Applied::Created { name, expires, .. } = done.applied else {
                // Two names of 128 random bits are not the same.
                return Reply::begin(out, exchange, Status::CONFLICT, date).empty();
            };
            let mut reply = Reply::begin(out, exchange, Status::CREATED, date);
            // The name is of letters and digits.
            let _ = reply.field("Location", &format!("{root}{name}"));
            tell_end(reply, &name, expires, done.there.as_ref());
        }))
    }

    /// Puts a channel's end off as a publication does, or to where the fields say.
    pub(super) fn renew(&self, request: &Incoming<'_>, clock: &Clock) -> Result<Answer, No> {
        let there = self.describe()?;
        // Whose time it is stays as it was.
        let usual = match there.settings.expiry {
            Expiry::AfterPublish(_) => Expiry::AfterPublish,
            _ => Expiry::AfterActivity,
        };
        let name = self.name.to_owned();
        let order = match asked::expiry(&request.head, usual)? {
            None => Command::Renew(self.name.into()),
            Some(expiry) => Command::SetExpiry { channel: self.name.into(), expiry },
        };
        Ok(self.carry_out(order, request.exchange, clock, move |out, exchange, date, done| {
            let expires = match done.applied {
                Applied::Renewed { expires } => expires,
                // Nothing else comes of it.
                _ => None,
            };
            let reply = Reply::begin(out, exchange, Status::OK, date);
            tell_end(reply, &name, expires, done.there.as_ref());
        }))
    }
}

/// What a channel is called and when it goes by itself, as JSON.
fn tell_end(mut reply: Reply<'_>, name: &str, expires: Option<u64>, there: Option<&ChannelInfo>) {
    reply.static_lines("Content-Type: application/json\r\n").static_lines(FRESH);
    put_safety(&mut reply, None);
    if let Some(there) = there {
        put_state(&mut reply, there);
    }
    let expires = expires.map(instant::write);
    let told = serde_json::json!({ "channel": name, "expires": expires });
    reply.whole(format!("{told}\n").as_bytes());
}
