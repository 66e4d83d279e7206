//! The errors of scripts as those of requests: with positions in the source, for the log and for the
//! error page in development.

use std::fmt::Write as _;

use bine_http::Status;
use bine_script::{Fault, Frame, Misuse, Position, ScriptError};

use super::call_state::CallState;
use super::generation::{CompileFailure, Generation};
use crate::error::Error;

/// Frames of a stack trace that a message shows.
const MAX_FRAMES: usize = 20;

/// The error of a request whose call has failed.
pub(super) fn of_call(generation: &Generation, state: &CallState, fault: &Fault) -> Error {
    if let Fault::Exception(error) = fault
        && let Some(failure) = state.failure_of(error)
    {
        return failure.into();
    }
    let app = &generation.app;
    let name = if app.path.is_empty() { "the application" } else { &app.path };
    match fault {
        Fault::Exception(error) => {
            let status = state.status_of(error).unwrap_or(Status::INTERNAL_SERVER_ERROR);
            Error::hidden(status, explained(generation, error))
        }
        Fault::Limit(limit, error) => {
            let reason = explained(generation, error);
            unavailable(format!(
                "{name} has exceeded its limit of {limit} and starts again: {reason}"
            ))
        }
        Fault::Ended(limit) => unavailable(format!(
            "{name} has ended, because another call exceeded its limit of {limit}"
        )),
        Fault::Misuse(Misuse::TooManyCalls) => {
            unavailable(format!("too many calls of {name} wait at one time"))
        }
        Fault::Misuse(misuse) => Error::hidden(Status::INTERNAL_SERVER_ERROR, misuse.to_string()),
    }
}

/// The error of a request to an application that cannot be compiled.
pub(super) fn of_compiler(failure: &CompileFailure) -> Error {
    Error::hidden(Status::INTERNAL_SERVER_ERROR, failure.message())
}

fn unavailable(reason: String) -> Error {
    Error::hidden(Status::SERVICE_UNAVAILABLE, reason)
}

/// An error in the form of the compiler's messages: the place in the source, the message, the line
/// with a marker, and the stack trace.
pub(super) fn explained(generation: &Generation, error: &ScriptError) -> String {
    let mut text = String::new();
    let place = error.position().and_then(|position| generation.in_source(position));
    if let Some((position, _)) = &place {
        let _ = write!(text, "{position}: ");
    }
    let _ = match (error.name.as_str(), error.message.as_str()) {
        ("", message) => write!(text, "uncaught: {message}"),
        (name, "") => text.write_str(name),
        (name, message) => write!(text, "{name}: {message}"),
    };
    if error.imports.len() > 1 {
        let _ = write!(text, "\n  imported by {}", error.imports.join(" -> "));
    }
    let excerpt = place.and_then(|(_, excerpt)| excerpt).or_else(|| error.excerpt.clone());
    for line in excerpt.iter().flat_map(|excerpt| excerpt.lines()) {
        let _ = write!(text, "\n  {line}");
    }
    let own = |frame: &&Frame| frame.position.as_ref().is_some_and(|place| !place.is_built_in());
    for frame in error.frames.iter().filter(own).take(MAX_FRAMES) {
        let _ = write!(text, "\n  at {}", SourceFrame { generation, frame });
    }
    if let Some(cause) = &error.cause {
        let _ = write!(text, "\ncaused by {}", explained(generation, cause));
    }
    text
}

/// A frame with its position in the source.
struct SourceFrame<'s> {
    generation: &'s Generation,
    frame: &'s Frame,
}

impl std::fmt::Display for SourceFrame<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Frame { function, position } = self.frame;
        let function = if function.is_empty() { "(anonymous)" } else { function };
        let position = position.as_ref().map(|position: &Position| {
            let found = self.generation.in_source(position);
            found.map_or_else(|| position.clone(), |(position, _)| position)
        });
        match position {
            Some(position) => write!(to, "{function} ({position})"),
            None => to.write_str(function),
        }
    }
}
