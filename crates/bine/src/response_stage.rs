//! The interface between a program and the stages that change its responses as bytes, such as
//! compression.

use std::sync::Arc;

use bine_server::Handler;

use crate::configuration::Configuration;

/// A stage that changes the responses of the whole program: those of pages, services, subsystems, files
/// and middleware.
pub(crate) trait ResponseStage: Send + Sync {
    /// Wraps the handler of a program with this configuration. A stage without work returns the handler
    /// itself, so that requests do not pay for the stage.
    fn wrap(&self, handler: Arc<dyn Handler>, configuration: &Configuration) -> Arc<dyn Handler>;
}
