//! Lists channels and their memory for an operator.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::task::Poll;

use bine_http::{Head, Reply, Status, query};
use bine_push::ChannelSummary;
use bine_server::{Answer, Clock, Finished, Incoming};

use super::{FRESH, Failure, Resource, put_safety};
use crate::channels::Channels;
use crate::channels::access::{ChannelAction, Denied, OwnedClient};

/// A parsed list request.
struct ListRequest {
    is_by_size: bool,
    limit: usize,
    /// The name after which a list by name begins.
    after: String,
}

/// The default and the maximum number of channels in a list.
const LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;
/// Channels read under one lock.
const CHUNK: usize = 1000;

impl Resource<'_> {
    /// Lists the channels that the client may manage.
    pub(super) fn list(
        &self,
        request: &Incoming<'_>,
        clock: &Clock,
    ) -> Result<Answer, ListFailure> {
        let wanted = ListRequest::of(&request.head)?;
        self.client.check_some(ChannelAction::Manage)?;
        self.client.charge_messages(1)?;
        // The list may take several turns of the event loop, so it counts as a held request.
        let client = self.client.detach(None)?;
        let (channels, exchange, date) = (self.channels.clone(), request.exchange, clock.date());
        Ok(Answer::Later(Box::pin(async move {
            let listed = listed(&channels, &client, &wanted).await;
            let each = listed.iter().map(|one| {
                let ChannelSummary { name, messages, bytes, publisher } = one;
                serde_json::json!({
                    "channel": &**name, "bytes": bytes, "messages": messages, "publisher": publisher.as_deref()
                })
                .to_string()
            });
            let body = format!("[{}]\n", each.collect::<Vec<_>>().join(","));
            let mut bytes = Vec::new();
            let mut reply = Reply::begin(&mut bytes, exchange, Status::OK, &date);
            reply.static_lines("Content-Type: application/json\r\n").static_lines(FRESH);
            put_safety(&mut reply, None);
            reply.whole(body.as_bytes());
            Finished { bytes, follow: None, close: false }
        })))
    }
}

/// The reason why a list request fails.
pub(super) enum ListFailure {
    Denied(Denied),
    Failure(Failure),
}

impl From<Denied> for ListFailure {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl From<Failure> for ListFailure {
    fn from(no: Failure) -> Self {
        Self::Failure(no)
    }
}

impl ListRequest {
    fn of(head: &Head<'_>) -> Result<Self, Failure> {
        let mut wanted = Self { is_by_size: false, limit: LIMIT, after: String::new() };
        for (name, value) in query::pairs(head.query().unwrap_or_default()) {
            let decoded = value.decode();
            let value = decoded.map_err(|_| "the query is not encoded as it should be")?;
            match &*value {
                "size" if name.is("by") => wanted.is_by_size = true,
                "name" if name.is("by") => wanted.is_by_size = false,
                _ if name.is("by") => return Err("`by` is name or size".into()),
                number if name.is("limit") => {
                    let number = number.parse::<usize>().map_err(|_| "`limit` is a number")?;
                    wanted.limit = number.clamp(1, MAX_LIMIT);
                }
                after if name.is("after") => after.clone_into(&mut wanted.after),
                // The access check has already read the token.
                _ if name.is("access_token") => {}
                _ => return Err("a list is asked for with `by`, `limit` and `after`".into()),
            }
        }
        Ok(wanted)
    }
}

/// Returns the largest channels that a client may manage, or those after a name.
async fn listed(
    channels: &Channels,
    client: &OwnedClient,
    wanted: &ListRequest,
) -> Vec<ChannelSummary> {
    let client = client.client();
    let (mut behind, mut by_name) = (wanted.after.clone(), Vec::new());
    let mut largest = BinaryHeap::new();
    loop {
        let chunk = channels.0.hub(|hub| hub.list_after(&behind).take(CHUNK).collect::<Vec<_>>());
        let chunk = chunk.unwrap_or_default();
        let Some(last) = chunk.last() else { break };
        last.name.as_ref().clone_into(&mut behind);
        for one in chunk {
            if client.check(ChannelAction::Manage, &one.name).is_err() {
                continue;
            }
            if wanted.is_by_size {
                largest.push(BySize(Reverse((one.bytes, Reverse(one.name.clone()))), one));
                if largest.len() > wanted.limit {
                    largest.pop();
                }
            } else if by_name.len() < wanted.limit {
                by_name.push(one);
            } else {
                return by_name;
            }
        }
        // Yields to other tasks of the thread.
        let mut has_waited = false;
        poll_fn(|task| {
            if std::mem::replace(&mut has_waited, true) {
                return Poll::Ready(());
            }
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
    if wanted.is_by_size {
        return largest.into_sorted_vec().into_iter().map(|BySize(_, one)| one).collect();
    }
    by_name
}

/// Orders channels by size, the largest first, and then by name.
struct BySize(Reverse<(u64, Reverse<std::sync::Arc<str>>)>, ChannelSummary);

impl Ord for BySize {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for BySize {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for BySize {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for BySize {}
