//! Compressed responses as a subsystem of a program.

use std::sync::Arc;

use bine_server::Handler;

use super::choices::CompressionChoices;
use super::responder::Compressing;
use super::stage::{SharedParts, Stage};
use crate::configuration::Configuration;
use crate::prometheus::PrometheusText;
use crate::response_stage::ResponseStage;
use crate::subsystem::{Definition, Registration, Running, Subsystem};

inventory::submit! {
    Registration { rank: 90, create: || Box::new(CompressionSubsystem::default()) }
}

/// The compression of a program that has not started.
#[derive(Default)]
struct CompressionSubsystem {
    /// The memory of the cache in bytes.
    cache: usize,
}

/// The compression of a running program.
struct RunningCompression(Arc<SharedParts>);

impl Subsystem for CompressionSubsystem {
    fn configure(&mut self, configuration: &Configuration) {
        self.cache = configuration.choice::<CompressionChoices>().cache;
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        let shared = Arc::new(SharedParts::new(self.cache));
        let running = Arc::new(RunningCompression(shared));
        definition.response_stages.push(Arc::clone(&running) as _);
        definition.running.push(running);
        Ok(())
    }
}

impl ResponseStage for RunningCompression {
    fn wrap(&self, handler: Arc<dyn Handler>, configuration: &Configuration) -> Arc<dyn Handler> {
        let stage = Stage::new(configuration.choice(), Arc::clone(&self.0));
        if stage.is_off() {
            return handler;
        }
        Arc::new(Compressing { inner: handler, stage: Arc::new(stage) })
    }
}

impl Running for RunningCompression {
    fn write_metrics(&self, text: &mut PrometheusText) {
        self.0.counters.write(text);
    }
}
