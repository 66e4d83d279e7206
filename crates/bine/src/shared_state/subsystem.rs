//! The shared state as a subsystem of a program.

use std::sync::Arc;

use bine_log as log;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::SharedState;
use crate::app::App;
use crate::node_directory::NodeDirectory;
use crate::signal::Signal;
use crate::store::{Options, Store};
use crate::subsystem::{Definition, Registration, Running, Subsystem};

/// The shared state of a program that has not started.
#[derive(Default)]
struct SharedStateSubsystem {
    state: SharedState,
    directory: Option<Arc<dyn NodeDirectory>>,
    /// The name of a signal that was shared twice.
    repeated: Option<&'static str>,
}

inventory::submit! {
    // After the cluster, which names the nodes, and before all that share something.
    Registration { rank: 5, create: || Box::new(SharedStateSubsystem::default()) }
}

impl App {
    /// Shares the value of a signal between all nodes of a cluster under a name: what one node sets,
    /// all nodes display. The value that was set last counts. A node that starts later takes the value
    /// over. On one machine this method has no effect.
    ///
    /// Other nodes learn of a value after about a millisecond. Of several values in quick succession
    /// they may see the last one only.
    ///
    /// ```
    /// use bine::prelude::*;
    ///
    /// let degrees = Signal::new(21.5);
    /// let app = App::new().shared_signal("degrees", &degrees);
    /// # drop(app);
    /// ```
    pub fn shared_signal<T>(mut self, name: &'static str, signal: &Signal<T>) -> Self
    where
        T: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let own: &mut SharedStateSubsystem = self.subsystems.get_mut();
        let state = own.state.clone();
        let is_first = signal.on_set(move |value| {
            if state.is_shared() {
                match serde_json::to_string(value) {
                    Ok(json) => state.set_value(name, &json),
                    Err(error) => {
                        log::error(format_args!("the signal `{name}` is not shared: {error}"));
                    }
                }
            }
        });
        if !is_first {
            own.repeated = Some(name);
        }
        let signal = signal.clone();
        own.state.watch_value(name, move |json| {
            let is_same = |value: &T| serde_json::to_string(value).is_ok_and(|own| own == json);
            if signal.with_untracked(is_same) {
                return;
            }
            match serde_json::from_str(json) {
                Ok(value) => signal.follow(value),
                Err(error) => log::error(format_args!(
                    "another node has set the signal `{name}` to a value that this program cannot read ({error}): run the same program on all nodes"
                )),
            }
        });
        self
    }
}

impl Subsystem for SharedStateSubsystem {
    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        if let Some(name) = self.repeated {
            return Err(format!(
                "the signal `{name}` is shared twice: remove one `.shared_signal({name:?}, ..)`"
            ));
        }
        self.directory.clone_from(&definition.nodes);
        definition.states.add(self.state.clone());
        if self.directory.is_some() {
            definition.running.push(Arc::new(RunningState(self.state.clone())));
        }
        Ok(())
    }

    fn declare(&self, options: Options) -> Options {
        options.extension(self.state.extension())
    }

    fn restore(&mut self, store: &Store) -> Result<(), String> {
        self.state.begin(store, self.directory.take())
    }
}

/// The hooks of the shared state while the program runs.
struct RunningState(SharedState);

impl Running for RunningState {
    fn stop(&self) {
        self.0.end();
    }
}
