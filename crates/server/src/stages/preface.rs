//! The first part of the request stage for a connection that a proxy begins with a header of the
//! PROXY protocol: receives the header, and gives the connection to the client that it names.

use bine_http::{MAX_PROXY_HEADER, ProxyFault, ProxyHeader, ProxyStep};

use crate::connection::{Connection, Phase, ThreadContext};
use crate::metrics::Ending;
use crate::next::Next;
use crate::refusal::TOO_MANY;
use crate::stages::input::{begin_to_wait, make_room};
use crate::stages::{expire, linger};
use crate::system::Transfer;
use crate::transport::Transport;

/// Receives once, and only bytes of the header. Returns `None` if the stage should continue.
///
/// The deadline is that of the TLS handshake or of the first byte, which follow the header.
pub(super) fn receive_preface<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Option<Next> {
    let sender = connection.peer;
    // A reload may have ended the trust since the accept.
    if !context.config.settings.proxies.contain(sender) {
        context.budgets.census.refuse_sender(
            sender,
            format_args!(
                "it is no trusted proxy; add it to `trusted-proxies`, or connect to an address \
                 without `proxy=on`"
            ),
        );
        return Some(connection.end(Ending::Fault));
    }
    if L::BLOCKS
        && let Some(next) = begin_to_wait(connection, context)
    {
        return Some(next);
    }
    make_room(context);
    let kept = context.input.len();
    let space = &mut context.scratch[context.input.start..][..MAX_PROXY_HEADER];
    let length = |bytes: &[u8]| match ProxyHeader::parse(bytes) {
        Ok(ProxyStep::Header(_, length)) => length,
        Ok(ProxyStep::More) | Err(_) => bytes.len(),
    };
    let transfer = connection.transport.receive_preface(space, kept, length);
    if L::BLOCKS {
        context.clock.turn();
    }
    match transfer {
        Transfer::Moved(count) => {
            context.input.end += count;
            match ProxyHeader::parse(&context.scratch[context.input.clone()]) {
                Ok(ProxyStep::More) => None,
                Ok(ProxyStep::Header(header, _)) => name_client(connection, context, &header),
                Err(fault) => Some(reject(connection, context, fault)),
            }
        }
        Transfer::Again => {
            context.save_input(connection);
            Some(Next::Idle)
        }
        Transfer::TimedOut if connection.deadline.has_come(context.clock.now()) => {
            Some(expire(connection, context))
        }
        // The scheduler may need this thread for another connection.
        Transfer::TimedOut if connection.phase == Phase::Handshake => Some(Next::Request),
        Transfer::TimedOut => None,
        // A health check of a proxy may open a connection and send nothing.
        Transfer::Ended | Transfer::Broken | Transfer::Fault => Some(connection.end(Ending::Peer)),
    }
}

/// Gives the connection to the client that `header` names: it counts as one of that client from now
/// on.
fn name_client<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    header: &ProxyHeader,
) -> Option<Next> {
    context.input = 0..0;
    context.has_new_input = false;
    let sender = connection.peer;
    let client = context.config.settings.proxies.client_of(sender, header);
    if context.budgets.census.reassign(sender, client).is_err() {
        let closed = connection.end(Ending::Load);
        // With TLS the reply would need a handshake.
        if sender.is_secure() {
            return Some(closed);
        }
        // The new socket has room for the reply.
        let _ = connection.transport.send(TOO_MANY.response(), false);
        connection.peer = sender.with_preface(false);
        linger(connection, context);
        return None;
    }
    connection.peer = client;
    connection.transport.count_handshake_for(client.block());
    None
}

/// Closes a connection that begins with no header. The client gets no reply, since the bytes may
/// belong to any protocol.
fn reject<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    fault: ProxyFault,
) -> Next {
    context.input = 0..0;
    context.has_new_input = false;
    let remedy = match fault {
        ProxyFault::NoHeader => {
            "; make the proxy send one (`send-proxy-v2` in HAProxy, `proxy_protocol on` in nginx), \
             or remove `proxy=on` from `listen`"
        }
        _ => "; make the proxy send version 1 or 2 of the PROXY protocol",
    };
    context.budgets.census.refuse_sender(connection.peer, format_args!("{fault}{remedy}"));
    connection.end(Ending::Fault)
}
