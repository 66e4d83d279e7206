//! The stages as spans of the crate `tracing`, for the subscriber of a program.

use tracing::level_filters::LevelFilter;
use tracing::span::EnteredSpan;
use tracing::{Span, trace_span};

use crate::stage::Stage;

/// The target of the spans. Their level is TRACE, and their names are those of the [stages](Stage::name).
/// The field `route` has the name of the route or the service, once it is known.
const TARGET: &str = "bine::stage";

/// Enters the span of a stage. Without a subscriber for its level, this is one load and one branch.
#[inline]
pub(crate) fn enter(stage: Stage, route: Option<&'static str>) -> Option<Box<EnteredSpan>> {
    if LevelFilter::current() < LevelFilter::TRACE {
        return None;
    }
    let span = span(stage, route.filter(|route| !route.is_empty()));
    // The level is that of all targets, and the subscriber may not want this one.
    (!span.is_disabled()).then(|| Box::new(span.entered()))
}

/// The name of a span is a part of the program, so each stage has a line of its own.
#[cold]
fn span(stage: Stage, route: Option<&'static str>) -> Span {
    match stage {
        Stage::Outside => Span::none(),
        Stage::Accept => trace_span!(target: TARGET, "accept", route),
        Stage::Receive => trace_span!(target: TARGET, "receive", route),
        Stage::Parse => trace_span!(target: TARGET, "parse", route),
        Stage::Route => trace_span!(target: TARGET, "route", route),
        Stage::Admission => trace_span!(target: TARGET, "admission", route),
        Stage::Handler => trace_span!(target: TARGET, "handler", route),
        Stage::Write => trace_span!(target: TARGET, "write", route),
        Stage::Http2 => trace_span!(target: TARGET, "http2", route),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    use super::*;
    use crate::span::{enter as enter_stage, enter_route};

    /// The lines `enter NAME ROUTE` and `exit NAME ROUTE`.
    #[derive(Clone, Default)]
    struct Lines {
        spans: Arc<Mutex<Vec<String>>>,
        log: Arc<Mutex<Vec<String>>>,
        level: Arc<AtomicU64>,
    }

    struct Text(String);

    impl Visit for Text {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            self.0.extend([" ", field.name(), &format!("={value:?}")]);
        }
    }

    impl Lines {
        fn note(&self, verb: &str, id: &Id) {
            let name = self.spans.lock().unwrap()[id.into_u64() as usize - 1].clone();
            self.log.lock().unwrap().push(format!("{verb} {name}"));
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            assert_eq!((metadata.target(), *metadata.level()), (TARGET, Level::TRACE));
            true
        }

        fn new_span(&self, attributes: &Attributes<'_>) -> Id {
            let mut text = Text(attributes.metadata().name().to_owned());
            attributes.record(&mut text);
            let mut spans = self.spans.lock().unwrap();
            spans.push(text.0);
            Id::from_u64(spans.len() as u64)
        }

        fn record(&self, _span: &Id, _values: &Record<'_>) {}

        fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

        fn event(&self, _event: &Event<'_>) {}

        fn enter(&self, span: &Id) {
            self.level.fetch_add(1, Ordering::Relaxed);
            self.note("enter", span);
        }

        fn exit(&self, span: &Id) {
            self.level.fetch_sub(1, Ordering::Relaxed);
            self.note("exit", span);
        }
    }

    #[test]
    fn enters_a_span_for_each_stage_and_exits_it() {
        let lines = Lines::default();
        tracing::subscriber::with_default(lines.clone(), || {
            let stage = enter_route(Stage::Handler, "shop::cart");
            drop(enter_stage(Stage::Admission));
            drop(stage);
            drop(enter_route(Stage::Http2, ""));
            drop(enter_stage(Stage::Outside));
        });
        assert_eq!(
            *lines.log.lock().unwrap(),
            [
                "enter handler route=\"shop::cart\"",
                "enter admission",
                "exit admission",
                "exit handler route=\"shop::cart\"",
                "enter http2",
                "exit http2",
            ]
        );
    }

    #[test]
    fn names_each_span_like_its_stage() {
        let lines = Lines::default();
        tracing::subscriber::with_default(lines.clone(), || {
            for stage in Stage::ALL {
                drop(enter_stage(stage));
            }
        });
        let names: Vec<&str> = Stage::ALL
            .iter()
            .filter(|stage| **stage != Stage::Outside)
            .map(|it| it.name())
            .collect();
        assert_eq!(*lines.spans.lock().unwrap(), names);
        assert_eq!(lines.level.load(Ordering::Relaxed), 0);
    }
}
