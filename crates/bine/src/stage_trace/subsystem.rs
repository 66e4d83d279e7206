//! Traces as a subsystem of a program: the start and the end of a recording.

use std::io;
use std::sync::Arc;

use bine_log as log;

use super::choices::TraceChoices;
use super::recorder::{TraceRecorder, TraceSubscriber};
use super::trace_file::TraceFile;
use crate::configuration::Configuration;
use crate::subsystem::{Definition, Registration, Running, Start, Subsystem};

/// The trace of a program that has not started.
#[derive(Default)]
struct TraceSubsystem {
    choices: TraceChoices,
    recorder: Option<Arc<TraceRecorder>>,
}

inventory::submit! {
    // It starts before all others except profiles and stops after them, so that their stages are recorded.
    Registration { rank: 1, create: || Box::new(TraceSubsystem::default()) }
}

impl Subsystem for TraceSubsystem {
    fn configure(&mut self, configuration: &Configuration) {
        self.choices = configuration.choice();
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        let TraceChoices { file: Some(path), spans } = &self.choices else { return Ok(()) };
        let file = TraceFile::create(path, *spans)
            .map_err(|error| format!("trace-stages {}: {error}", path.display()))?;
        let recorder = TraceRecorder::new(file, report);
        definition.running.push(Arc::new(RunningTrace(Arc::clone(&recorder))));
        self.recorder = Some(recorder);
        Ok(())
    }

    fn start(&mut self, _start: &Start<'_>) -> Result<(), String> {
        let Some(recorder) = self.recorder.take() else { return Ok(()) };
        tracing::subscriber::set_global_default(TraceSubscriber(recorder)).map_err(|_| {
            "trace-stages: the program has a subscriber of `tracing`, which receives the stages; \
             leave out `trace-stages`"
                .to_owned()
        })
    }
}

/// The hooks of a recording while the program runs.
struct RunningTrace(Arc<TraceRecorder>);

impl Running for RunningTrace {
    fn stop(&self) {
        self.0.finish();
    }
}

/// Logs that a trace was written.
fn report(written: io::Result<u64>) {
    match written {
        Ok(spans) => log::notice(format_args!(
            "the trace is complete with {spans} stages; ui.perfetto.dev shows the file"
        )),
        Err(error) => log::error(format_args!("cannot write the trace: {error}")),
    }
}
