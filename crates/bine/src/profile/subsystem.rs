//! Profiles as a subsystem of a program: the start and the end of a recording.

use std::io;
use std::sync::Arc;

use bine_log as log;
use bine_profile::{Recording, WrittenProfile};

use super::choices::ProfileChoices;
use crate::configuration::Configuration;
use crate::subsystem::{Definition, Registration, Running, Start, Subsystem};

/// The recording of a program that has not started.
#[derive(Default)]
struct ProfileSubsystem(ProfileChoices);

inventory::submit! {
    // It starts before all others and stops after them, so that their allocations are recorded.
    Registration { rank: 0, create: || Box::new(ProfileSubsystem::default()) }
}

impl Subsystem for ProfileSubsystem {
    fn configure(&mut self, configuration: &Configuration) {
        self.0 = configuration.choice();
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        if self.0.file.is_some() {
            definition.running.push(Arc::new(RunningProfile));
        }
        Ok(())
    }

    fn start(&mut self, _start: &Start<'_>) -> Result<(), String> {
        let ProfileChoices { file: Some(file), after, requests } = &self.0 else { return Ok(()) };
        let (file, after, requests) = (file.clone(), *after, *requests);
        let name = file.display().to_string();
        bine_profile::start(Recording { file, after, requests, on_written: report })
            .map_err(|error| format!("profile-allocations {name}: {error}"))
    }
}

/// The hooks of a recording while the program runs.
struct RunningProfile;

impl Running for RunningProfile {
    fn command(&self, words: &[String]) -> Option<Result<String, String>> {
        let [first, verb] = words else { return None };
        if (first.as_str(), verb.as_str()) != ("profile", "write") {
            return None;
        }
        Some(match bine_profile::finish() {
            Some(Ok(written)) => Ok(format!("{}\n", description(&written))),
            Some(Err(error)) => Err(format!("cannot write the profile: {error}")),
            None => Err("the profile has been written already; start the server again to record another one".to_owned()),
        })
    }

    fn stop(&self) {
        if let Some(written) = bine_profile::finish() {
            report(&written);
        }
    }
}

/// Logs that a profile was written.
fn report(written: &io::Result<WrittenProfile>) {
    match written {
        Ok(written) => log::notice(format_args!("{}", description(written))),
        Err(error) => log::error(format_args!("cannot write the profile of allocations: {error}")),
    }
}

fn description(written: &WrittenProfile) -> String {
    let WrittenProfile { file, requests, count } = written;
    let file = file.display();
    format!(
        "{file} has {} allocations during {requests} requests; `bine profile {file}` shows them",
        count.number
    )
}
