//! Creates channels without a given name, and renews the expiry of channels.

use bine_http::{Reply, Status};
use bine_push::{Applied, ChannelInfo, ChannelName, Command, Durability, Expiry, Settings};
use bine_server::{Answer, Clock, Incoming, Outgoing};

use super::{
    DEFAULT_TYPE, FRESH, Failure, ROOT, Resource, address, body_of, put_safety, put_state, request,
    timestamp,
};

/// The default expiry: a day after the last publication, in milliseconds. Only the creator knows
/// the random name, so an abandoned channel would stay forever.
const DEFAULT_EXPIRY: Expiry = Expiry::AfterPublish(24 * 60 * 60 * 1000);

impl Resource<'_> {
    /// Creates a channel under a random name, and returns the name and the expiry.
    pub(super) fn create_unnamed(
        &self,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Failure> {
        let head = &request.head;
        if head.field("Stream-Forked-From").is_some() {
            return Err("a fork has a name: make it by PUT".into());
        }
        let kind = head.field_text("Content-Type").map(str::trim).filter(|kind| !kind.is_empty());
        let kind = kind.unwrap_or(DEFAULT_TYPE);
        let settings = Settings {
            content_type: Some(kind.into()),
            retention: request::retention(head)?.unwrap_or_default(),
            expiry: request::expiry(head, Expiry::AfterPublish)?.unwrap_or(DEFAULT_EXPIRY),
            durability: request::durability(head)?.unwrap_or(Durability::Commit),
        };
        let first = request::drafts(&"".into(), kind, body_of(request))?;
        if let Err(denied) = self.client.charge_messages(first.len().max(1)) {
            return Ok(denied.answer(out.buffer, request.exchange, &clock.date()));
        }
        let mut bits = [0; 16];
        bine_store::disk::random(&mut bits);
        let command = Command::Create {
            name: ChannelName::Random(u128::from_le_bytes(bits)),
            settings,
            fork: None,
            first,
            is_closed: request::closes(head),
        };
        let root = address(request, ROOT);
        Ok(self.execute(command, request.exchange, clock, move |out, exchange, date, done| {
            let Applied::Created { name, expires, .. } = done.applied else {
                // Two names of 128 random bits never collide in practice.
                return Reply::begin(out, exchange, Status::CONFLICT, date).empty();
            };
            let mut reply = Reply::begin(out, exchange, Status::CREATED, date);
            // The name consists of letters and digits.
            let _ = reply.field("Location", &format!("{root}{name}"));
            finish_with_expiry(reply, &name, expires, done.info.as_ref());
        }))
    }

    /// Renews a channel as a publication does, or sets the expiry that the fields contain.
    pub(super) fn renew(&self, request: &Incoming<'_>, clock: &Clock) -> Result<Answer, Failure> {
        let info = self.describe()?;
        // A new duration keeps the rule for what renews it.
        let usual = match info.settings.expiry {
            Expiry::AfterPublish(_) => Expiry::AfterPublish,
            _ => Expiry::AfterActivity,
        };
        let name = self.name.to_owned();
        let command = match request::expiry(&request.head, usual)? {
            None => Command::Renew(self.name.into()),
            Some(expiry) => Command::SetExpiry { channel: self.name.into(), expiry },
        };
        Ok(self.execute(command, request.exchange, clock, move |out, exchange, date, done| {
            let expires = match done.applied {
                Applied::Renewed { expires } => expires,
                // A renewal has no other result.
                _ => None,
            };
            let reply = Reply::begin(out, exchange, Status::OK, date);
            finish_with_expiry(reply, &name, expires, done.info.as_ref());
        }))
    }
}

/// Writes the name and the expiry of a channel as JSON.
fn finish_with_expiry(
    mut reply: Reply<'_>,
    name: &str,
    expires: Option<u64>,
    info: Option<&ChannelInfo>,
) {
    reply.static_lines("Content-Type: application/json\r\n").static_lines(FRESH);
    put_safety(&mut reply, None);
    if let Some(info) = info {
        put_state(&mut reply, info);
    }
    let expires = expires.map(timestamp::write);
    let told = serde_json::json!({ "channel": name, "expires": expires });
    reply.whole(format!("{told}\n").as_bytes());
}
