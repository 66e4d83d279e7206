//! An upgraded connection through the proxy: bytes in both directions, until both have ended.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use bine_server::{CloseReason, Upgrade, UpgradedConnection};
use tokio::time::timeout;

use super::origin::OriginConnection;

/// Connects the client with `origin`, whose response has agreed to the upgrade. Without traffic for
/// `silence` the tunnel ends.
pub(super) fn tunnel(origin: OriginConnection, silence: Duration) -> Upgrade {
    Upgrade::new(move |client| {
        Box::pin(async move {
            let mut tunnel = Tunnel { client, origin, client_ended: false, origin_ended: false };
            while let Ok(is_open) = timeout(silence, poll_fn(|task| tunnel.poll_step(task))).await {
                if !is_open {
                    break;
                }
                if tunnel.client_ended && !tunnel.origin_ended {
                    tunnel.origin.finish().await;
                }
            }
            Ok(())
        })
    })
}

struct Tunnel {
    client: UpgradedConnection,
    origin: OriginConnection,
    /// Whether the client sends no more.
    client_ended: bool,
    /// Whether the origin sends no more.
    origin_ended: bool,
}

impl Tunnel {
    /// Moves bytes in a direction that is ready. Returns false at the end of the tunnel.
    fn poll_step(&mut self, task: &mut Context<'_>) -> Poll<bool> {
        if self.client.parting() == Some(CloseReason::Stop) {
            return Poll::Ready(false);
        }
        let upward = self.poll_upward(task);
        let downward = self.poll_downward(task);
        match (upward, downward) {
            (Poll::Ready(Err(())), _) | (_, Poll::Ready(Err(()))) => Poll::Ready(false),
            _ if self.client_ended && self.origin_ended => Poll::Ready(false),
            (Poll::Ready(Ok(())), _) | (_, Poll::Ready(Ok(()))) => Poll::Ready(true),
            (Poll::Pending, Poll::Pending) => Poll::Pending,
        }
    }

    /// From the client to the origin.
    fn poll_upward(&mut self, task: &mut Context<'_>) -> Poll<Result<(), ()>> {
        if self.client.received().is_empty() {
            if self.client_ended {
                return Poll::Pending;
            }
            return self.client.poll_receive(task).map(|received| {
                self.client_ended = matches!(received, Ok(0));
                received.map(|_| ()).map_err(|_| ())
            });
        }
        self.origin.poll_send(task, self.client.received()).map(|sent| {
            self.client.consume(sent.map_err(|_| ())?);
            Ok(())
        })
    }

    /// From the origin to the client.
    fn poll_downward(&mut self, task: &mut Context<'_>) -> Poll<Result<(), ()>> {
        if self.origin.has_unparsed() {
            return self.client.poll_send(task, self.origin.unparsed()).map(|sent| {
                self.origin.consume(sent.map_err(|_| ())?);
                Ok(())
            });
        }
        if self.origin_ended {
            return Poll::Pending;
        }
        self.origin.poll_receive(task).map(|received| {
            if matches!(received, Ok(0)) {
                self.origin_ended = true;
                self.client.finish();
            }
            received.map(|_| ()).map_err(|_| ())
        })
    }
}
