//! The channels that live pages display: a change of one renders these pages again.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, OnceLock};

use bine_push::{ChannelName, Command};

use crate::signal_core::SignalCore;

/// A signal for each group of channels. The group of a channel is a keyed hash of its name, so that the
/// memory is bounded and clients cannot choose channels of one group. A change of another channel of the
/// group causes a render without an effect.
#[derive(Default)]
pub(super) struct WatchedChannels(OnceLock<Box<WatchedGroups>>);

struct WatchedGroups {
    hasher: RandomState,
    /// The signals of groups that a page has displayed.
    signals: [OnceLock<Arc<SignalCore>>; GROUPS],
}

/// The number of groups.
const GROUPS: usize = 1024;

/// The groups of the channels that a command changes.
pub(super) enum ChangedChannels {
    /// No page has displayed a channel before the command was prepared.
    Unwatched,
    /// The numbers of the groups.
    Groups(Vec<usize>),
    /// Any may have changed.
    All,
}

impl WatchedGroups {
    fn group(&self, name: &str) -> usize {
        // The remainder is less than `GROUPS`.
        (self.hasher.hash_one(name) % GROUPS as u64) as usize
    }

    fn groups<'n>(&self, names: impl IntoIterator<Item = &'n Arc<str>>) -> ChangedChannels {
        let mut groups: Vec<usize> = names.into_iter().map(|name| self.group(name)).collect();
        groups.sort_unstable();
        groups.dedup();
        ChangedChannels::Groups(groups)
    }

    fn notify_all(&self) {
        self.signals.iter().filter_map(OnceLock::get).for_each(|signal| signal.notify());
    }
}

impl WatchedChannels {
    /// The signal of a channel, which may not exist yet.
    #[cfg_attr(not(feature = "script"), allow(dead_code, reason = "for applications in TSX"))]
    pub(super) fn watch(&self, name: &str) -> Arc<SignalCore> {
        let groups = self.0.get_or_init(|| {
            let signals = [const { OnceLock::new() }; GROUPS];
            Box::new(WatchedGroups { hasher: RandomState::new(), signals })
        });
        let signal = groups.signals[groups.group(name)].get_or_init(|| Arc::new(SignalCore::new()));
        Arc::clone(signal)
    }

    /// The channels that a command changes, before it runs.
    pub(super) fn changed_by(&self, command: &Command) -> ChangedChannels {
        let Some(groups) = self.0.get() else { return ChangedChannels::Unwatched };
        match command {
            Command::Publish(publish) => {
                let of_messages = publish.messages.iter().flat_map(|draft| &draft.channels);
                groups.groups(of_messages.chain(&publish.close))
            }
            Command::Create { name: ChannelName::Given(name), .. }
            | Command::Remove(name)
            | Command::Renew(name)
            | Command::SetExpiry { channel: name, .. } => groups.groups([name]),
            // The name did not exist before.
            Command::Create { name: ChannelName::Random(_), .. } => {
                ChangedChannels::Groups(Vec::new())
            }
        }
    }

    /// The channels with these names, which `names` returns only if a page has displayed one.
    pub(super) fn changed<N: AsRef<[Arc<str>]>>(
        &self,
        names: impl FnOnce() -> N,
    ) -> ChangedChannels {
        match self.0.get() {
            Some(groups) => groups.groups(names().as_ref()),
            None => ChangedChannels::Unwatched,
        }
    }

    /// Renders the pages again that display a changed channel. The caller holds no lock of the hub,
    /// and the command has taken effect.
    pub(super) fn notify(&self, changed: &ChangedChannels) {
        let Some(groups) = self.0.get() else { return };
        match changed {
            ChangedChannels::Groups(changed) => {
                let signals = changed.iter().filter_map(|group| groups.signals[*group].get());
                signals.for_each(|signal| signal.notify());
            }
            // A page has displayed its first channel while the command was written.
            ChangedChannels::Unwatched | ChangedChannels::All => groups.notify_all(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bine_push::{Draft, Publish};

    use super::*;
    use crate::signal_core::{SignalListener, SignalRead};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl SignalListener for Count {
        fn signal_changed(&self, _number: u64) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn publish(channels: &[&str]) -> Command {
        let channels = channels.iter().map(|name| Arc::from(*name)).collect();
        let messages = vec![Draft { channels, ..Draft::default() }];
        Command::Publish(Publish { messages, ..Publish::default() })
    }

    #[test]
    fn notifies_readers_of_a_changed_channel_once() {
        let watched = WatchedChannels::default();
        let early = watched.changed_by(&publish(&["news"]));
        let count = Arc::new(Count::default());
        let listener: Arc<dyn SignalListener> = Arc::<Count>::clone(&count);
        let read: SignalRead = watched.watch("news").read(&listener);
        let notify = |changed: &ChangedChannels| {
            watched.notify(changed);
            count.0.swap(0, Ordering::Relaxed)
        };
        assert_eq!(notify(&watched.changed_by(&publish(&["news", "news"]))), 1);
        assert!(!read.is_current());
        // The command was prepared before the page has displayed the channel.
        assert_eq!(notify(&early), 1);
        assert_eq!(notify(&ChangedChannels::All), 1);
        assert_eq!(notify(&watched.changed_by(&Command::Remove("news".into()))), 1);
        let signal = watched.watch("news");
        let other = (0..).map(|number| format!("other-{number}"));
        let mut other = other.filter(|name| !Arc::ptr_eq(&watched.watch(name), &signal));
        let other = other.next().unwrap();
        assert_eq!(notify(&watched.changed_by(&publish(&[&other]))), 0);
    }
}
