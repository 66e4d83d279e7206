//! The state of the link, put together from the tasks that follow and publish.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::replica::{Link, Replica};

/// Collects the reports of the tasks and passes each change on to the replica.
pub(crate) struct LinkState {
    replica: Arc<dyn Replica>,
    health: Mutex<Health>,
    /// The position of the last message that the replica has applied.
    position: watch::Sender<u64>,
    /// Whether the node has caught up, and the last checks succeeded.
    is_current: watch::Sender<bool>,
    /// When the replica last learned of a problem.
    warned_at: Mutex<Option<Instant>>,
}

/// The shortest time between two warnings.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

struct Health {
    /// Why the node may miss messages.
    following: Option<String>,
    /// Why the node cannot publish.
    publishing: Option<String>,
    reported: Option<Link>,
}

impl LinkState {
    pub(crate) fn new(replica: Arc<dyn Replica>, position: u64) -> Self {
        let state = Self {
            replica,
            health: Mutex::new(Health {
                following: Some("the node has not caught up with the stream yet".to_owned()),
                publishing: None,
                reported: None,
            }),
            position: watch::Sender::new(position),
            is_current: watch::Sender::new(false),
            warned_at: Mutex::new(None),
        };
        state.report();
        state
    }

    /// Applies a message, and makes its position known.
    pub(crate) fn deliver(&self, position: u64, message: &[u8]) -> Result<(), String> {
        self.replica.deliver(position, message)?;
        self.position.send_replace(position);
        Ok(())
    }

    /// The node has caught up.
    pub(crate) fn follows(&self) {
        self.lock().following = None;
        self.set_current(true);
        self.report();
    }

    /// The node may miss messages.
    pub(crate) fn follows_no_more(&self, reason: String) {
        self.lock().following = Some(reason);
        self.set_current(false);
        self.report();
    }

    /// The servers refuse this node. Reports the reason also if the node was cut off before.
    pub(crate) fn is_refused(&self, reason: String) {
        let mut health = self.lock();
        if health.reported.as_ref().is_some_and(|link| *link != Link::CutOff(reason.clone()))
            && !matches!(health.reported, Some(Link::Ended(_)))
        {
            health.reported = None;
        }
        drop(health);
        self.follows_no_more(reason);
    }

    /// The server acknowledges messages of this node.
    pub(crate) fn publishes(&self) {
        self.lock().publishing = None;
        self.report();
    }

    /// The server does not acknowledge messages of this node.
    pub(crate) fn publishes_no_more(&self, reason: String) {
        self.lock().publishing = Some(reason);
        self.report();
    }

    /// The servers refuse a request, which does not cut this node off. While the node is cut off
    /// anyway, that reason is enough.
    pub(crate) fn warn(&self, problem: &str) {
        if *self.is_current.borrow() {
            self.warn_at(Instant::now(), problem);
        }
    }

    fn warn_at(&self, now: Instant, problem: &str) {
        let mut warned_at = self.warned_at.lock().unwrap_or_else(PoisonError::into_inner);
        if warned_at.is_none_or(|last| now.duration_since(last) >= WARNING_INTERVAL) {
            *warned_at = Some(now);
            drop(warned_at);
            self.replica.warn(problem);
        }
    }

    /// Following has ended.
    pub(crate) fn end(&self, reason: String) {
        self.set_current(false);
        let link = Link::Ended(reason);
        self.lock().reported = Some(link.clone());
        self.replica.use_link(&link);
    }

    pub(crate) fn replica(&self) -> &dyn Replica {
        &*self.replica
    }

    /// The position of the last message that the replica has applied.
    pub(crate) fn position(&self) -> u64 {
        *self.position.borrow()
    }

    pub(crate) fn watch_position(&self) -> watch::Receiver<u64> {
        self.position.subscribe()
    }

    pub(crate) fn watch_current(&self) -> watch::Receiver<bool> {
        self.is_current.subscribe()
    }

    fn set_current(&self, is_current: bool) {
        let change = |current: &mut bool| std::mem::replace(current, is_current) != is_current;
        self.is_current.send_if_modified(change);
    }

    /// Reports the link if its kind has changed: a second reason for being cut off is no change.
    fn report(&self) {
        let mut health = self.lock();
        let link = match (&health.following, &health.publishing) {
            (Some(reason), _) | (None, Some(reason)) => Link::CutOff(reason.clone()),
            (None, None) => Link::Connected,
        };
        let is_change = match &health.reported {
            Some(Link::Ended(_)) => false,
            Some(reported) => std::mem::discriminant(reported) != std::mem::discriminant(&link),
            None => true,
        };
        if is_change {
            health.reported = Some(link.clone());
            drop(health);
            self.replica.use_link(&link);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::Outgoing;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<Link>>, Mutex<Vec<String>>);

    impl Replica for Recorder {
        fn unconfirmed_after(&self, _: u64) -> Option<Outgoing> {
            None
        }

        fn deliver(&self, _: u64, _: &[u8]) -> Result<(), String> {
            Ok(())
        }

        fn use_link(&self, link: &Link) {
            self.0.lock().unwrap().push(link.clone());
        }

        fn warn(&self, problem: &str) {
            self.1.lock().unwrap().push(problem.to_owned());
        }
    }

    #[test]
    fn warns_at_most_once_a_minute_and_only_while_connected() {
        let recorder = Arc::new(Recorder::default());
        let state = LinkState::new(Arc::clone(&recorder) as Arc<dyn Replica>, 0);
        state.warn("cut off");
        state.follows();
        state.warn("first");
        state.warn("second");
        let now = Instant::now();
        state.warn_at(now + Duration::from_secs(59), "third");
        state.warn_at(now + Duration::from_secs(61), "fourth");
        state.warn_at(now + Duration::from_secs(62), "fifth");
        assert_eq!(*recorder.1.lock().unwrap(), ["first", "fourth"]);
    }

    #[test]
    fn reports_changes_of_kind_and_refusals_only_and_ends_for_good() {
        let recorder = Arc::new(Recorder::default());
        let state = LinkState::new(Arc::clone(&recorder) as Arc<dyn Replica>, 0);
        state.follows();
        state.publishes_no_more("full".to_owned());
        state.follows_no_more("gone".to_owned());
        state.is_refused("wrong password".to_owned());
        state.follows_no_more("gone".to_owned());
        state.is_refused("wrong password".to_owned());
        state.follows();
        state.publishes();
        state.end("purged".to_owned());
        state.follows();
        let expected = [
            Link::CutOff("the node has not caught up with the stream yet".to_owned()),
            Link::Connected,
            Link::CutOff("full".to_owned()),
            Link::CutOff("wrong password".to_owned()),
            Link::Connected,
            Link::Ended("purged".to_owned()),
        ];
        assert_eq!(*recorder.0.lock().unwrap(), expected);
    }
}
