//! The filters of the start script: they run in place, in an instance of the thread.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bine_http::{Finished, Status};
use bine_script::{Fault, Value};

use super::breaches::Breaches;
use super::declarations::{FilterCall, declarations, query_of};
use super::program::{LoadedStart, ProgramSource as _, StartProgram, explained};
use super::script::StartScript;
use crate::error::Error;
use crate::filter::{Filter, FilterDecision, FilterRequest};
use crate::respond::{CustomContent, Response, ResponseHead, ResponseWriter};

/// How long a filter may run, and how long the script may load on a thread.
const RUN_TIME: Duration = Duration::from_millis(50);
/// An instance that cannot load is tried again after this time.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// All filters of a start script.
pub(in crate::scripts) struct ScriptFilter(pub(in crate::scripts) Arc<StartScript>);

thread_local! {
    /// The filters on this thread, with the number of their script. A thread serves one program, or a
    /// few in tests.
    static LOCAL: RefCell<Vec<(u64, Rc<LocalFilters>)>> = const { RefCell::new(Vec::new()) };
}

/// The filters of one version of a script on this thread.
struct LocalFilters {
    program: Arc<StartProgram>,
    slot: RefCell<FilterSlot>,
    /// How often each filter has exceeded its limit.
    breaches: Box<[RefCell<Breaches>]>,
}

/// The instance of this thread.
enum FilterSlot {
    /// No request has needed it, or it has ended.
    Empty,
    Ready(Rc<LoadedStart>),
    Failed {
        reason: String,
        since: Instant,
    },
}

impl Filter for ScriptFilter {
    fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
        let local = self.local();
        let path = request.path();
        let mut call = None;
        let mut fields = Vec::new();
        for (index, paths) in local.program.filters.iter().enumerate() {
            if !paths.match_path(path) {
                continue;
            }
            let call = call.get_or_insert_with(|| Rc::new(FilterCall::of(request)));
            match local.run(index, request, call) {
                Ok(FilterOutcome { fields: own, decision }) => {
                    fields.extend(own);
                    if !matches!(decision, FilterDecision::Continue) {
                        return with_fields(fields, decision);
                    }
                }
                Err(error) => {
                    let status = error.code();
                    let response = Response::custom(status, FilterFailure(error));
                    return FilterDecision::Respond(response);
                }
            }
        }
        with_fields(fields, FilterDecision::Continue)
    }
}

fn with_fields(fields: Vec<(String, String)>, decision: FilterDecision) -> FilterDecision {
    if fields.is_empty() {
        decision
    } else {
        FilterDecision::SetHeaders(fields, Box::new(decision))
    }
}

impl ScriptFilter {
    /// The filters of the current version on this thread.
    fn local(&self) -> Rc<LocalFilters> {
        let (id, number) = (self.0.id, self.0.number());
        let known = LOCAL.with_borrow(|all| {
            let (_, known) = all.iter().find(|(own, _)| *own == id)?;
            (known.program.number() == number).then(|| Rc::clone(known))
        });
        if let Some(known) = known {
            return known;
        }
        let new = Rc::new(LocalFilters::new(self.0.current()));
        let old = LOCAL.with_borrow_mut(|all| {
            let old =
                all.iter().position(|(own, _)| *own == id).map(|place| all.swap_remove(place));
            all.push((id, Rc::clone(&new)));
            old
        });
        // Outside of the borrow: an instance runs code when it is dropped.
        drop(old);
        new
    }
}

/// The decision of one filter.
struct FilterOutcome {
    /// Fields of the response.
    fields: Vec<(String, String)>,
    decision: FilterDecision,
}

impl LocalFilters {
    fn new(program: Arc<StartProgram>) -> Self {
        let breaches = program.filters.iter().map(|_| RefCell::default()).collect();
        Self { program, slot: RefCell::new(FilterSlot::Empty), breaches }
    }

    fn run(
        &self,
        index: usize,
        request: &FilterRequest<'_>,
        call: &Rc<FilterCall>,
    ) -> Result<FilterOutcome, Error> {
        if self.breaches[index].borrow_mut().is_suspended(Instant::now()) {
            return Err(unavailable(format!(
                "filter {} of start.ts exceeds its limits, and is not run for some seconds",
                index + 1
            )));
        }
        let loaded = self.loaded()?;
        let head = &request.incoming().head;
        let arguments = [head.method().as_str(), request.path(), query_of(head)].map(Value::from);
        let context = Rc::<FilterCall>::clone(call);
        let result = loaded.instance.call_within(&loaded.filters[index], &arguments, context);
        let failed = |reason| Error::hidden(Status::INTERNAL_SERVER_ERROR, reason);
        match { result }.finished() {
            Some(Ok(result)) => outcome(&result).map_err(failed),
            None => Err(failed("a filter of start.ts must not be async".to_owned())),
            Some(Err(fault)) => {
                let reason = explained(&self.program.generation, &fault);
                if !matches!(fault, Fault::Limit(..) | Fault::Ended(_)) {
                    return Err(failed(reason));
                }
                // The instance has ended; the next request starts a new instance.
                self.slot.replace(FilterSlot::Empty);
                self.breaches[index].borrow_mut().note(Instant::now());
                Err(unavailable(reason))
            }
        }
    }

    /// The instance of this thread. The first request that needs it loads it.
    fn loaded(&self) -> Result<Rc<LoadedStart>, Error> {
        match &*self.slot.borrow() {
            FilterSlot::Ready(loaded) => return Ok(Rc::clone(loaded)),
            FilterSlot::Failed { reason, since } if since.elapsed() < RETRY_INTERVAL => {
                return Err(unavailable(reason.clone()));
            }
            FilterSlot::Failed { .. } | FilterSlot::Empty => {}
        }
        let loaded = LoadedStart::new(&self.program.generation, &declarations(), RUN_TIME);
        let loaded = loaded.and_then(|loaded| {
            let changed = || {
                "start.ts has declared other filters than at the start of the server: its filters must not depend on the time or on chance".to_owned()
            };
            loaded.has_filters(&self.program.filters).then_some(loaded).ok_or_else(changed)
        });
        match loaded {
            Ok(loaded) => {
                let loaded = Rc::new(loaded);
                self.slot.replace(FilterSlot::Ready(Rc::clone(&loaded)));
                Ok(loaded)
            }
            Err(reason) => {
                let since = Instant::now();
                self.slot.replace(FilterSlot::Failed { reason: reason.clone(), since });
                Err(unavailable(reason))
            }
        }
    }
}

fn unavailable(reason: String) -> Error {
    Error::hidden(Status::SERVICE_UNAVAILABLE, reason)
}

/// Reads the result of a filter, which the words have checked.
fn outcome(result: &Value) -> Result<FilterOutcome, String> {
    let text = |name: &str| result.property(name).and_then(Value::as_text).unwrap_or_default();
    let status = || match result.property("status") {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "200 to 599")]
        Some(Value::Number(status)) => Status::new(*status as u16).ok_or("an invalid status"),
        _ => Err("a status is missing"),
    };
    let fields: Vec<(String, String)> = match result.property("headers") {
        Some(Value::Array(pairs)) => pairs.iter().filter_map(pair).collect(),
        _ => Vec::new(),
    };
    let decision = match (result, text("kind")) {
        (Value::Undefined | Value::Null, _) | (_, "headers") => FilterDecision::Continue,
        (_, "rewrite") => FilterDecision::Rewrite(text("target").to_owned()),
        (_, "redirect") => {
            let response = Response::status(status()?);
            FilterDecision::Respond(response.with_header("Location", text("location").to_owned()))
        }
        (_, "error") => {
            let message = text("message").to_owned();
            let response = Response::error(status()?, message);
            FilterDecision::Respond(response)
        }
        (_, "respond") => {
            let response =
                Response::bytes(text("type").to_owned(), text("body").as_bytes().to_vec());
            let response = response.with_status(status()?);
            let response = fields
                .into_iter()
                .fold(response, |response, (name, value)| response.with_header(name, value));
            return Ok(FilterOutcome {
                fields: Vec::new(),
                decision: FilterDecision::Respond(response),
            });
        }
        (_, kind) => return Err(format!("a filter of start.ts has returned {kind:?}")),
    };
    Ok(FilterOutcome { fields, decision })
}

fn pair(value: &Value) -> Option<(String, String)> {
    let Value::Array(pair) = value else { return None };
    let [name, value] = pair.as_slice() else { return None };
    Some((name.as_text()?.to_owned(), value.as_text()?.to_owned()))
}

/// The response for a filter that has failed, which the log has with its cause.
#[derive(Debug)]
struct FilterFailure(Error);

impl CustomContent for FilterFailure {
    fn respond(self: Box<Self>, _top: ResponseHead, to: &mut ResponseWriter<'_, '_>) -> Finished {
        to.refuse(self.0.code(), &self.0)
    }
}
