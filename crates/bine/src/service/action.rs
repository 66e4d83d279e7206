//! Actions: services without a name of their own, whose context is sealed in the page.
//!
//! The values that an action captures are sealed in its address, for the visitor's session and for
//! this action only. The server stores nothing: the address stays valid after a restart, until the
//! session ends or the program no longer has the action.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Once};

use bine_html::{Attribute, AttributeValue, Writer};
use bine_http::Status;
use bine_log as log;
use serde::Serialize;

use super::answer::{CallOutcome, CallReply, ServiceOutput};
use super::call::{Call, CallContext, Caller};
use super::call_arguments::{ArgumentsError, CallArguments, ServiceArguments};
use super::rule::rule_for;
use super::{ResponsePreference, Rule, run_to_outcome};
use crate::accept::prefers_pages;
use crate::arguments::{MOST_BODY, Needs, Rejection, RequestParts};
use crate::error::Error;
use crate::methods::Methods;
use crate::origin;
use crate::render_context::RenderContext;
use crate::returned_form::SentForm;
use crate::route::{Route, RouteInfo, RouteKind};
use crate::store::Transaction;
use crate::visitor_message::VisitorMessage;
use crate::wire;

/// An action of a page, which [`action!`](crate::action!) creates: the address of a form or a
/// button.
///
/// It is sealed when the page writes it, for the visitor's session. An action that is written
/// elsewhere, such as in a frozen page, has an invalid address, and the log reports it.
pub struct Action {
    declaration: &'static Declaration,
    /// A JSON object, or why the values cannot be captured.
    captures: Result<Vec<u8>, String>,
}

/// The declaration of an action in the source.
#[derive(Debug)]
pub struct Declaration {
    /// The module of the declaration.
    pub module: &'static str,
    /// The line of the declaration.
    pub line: u32,
    /// The name that the program gives it, if any.
    pub name: Option<&'static str>,
    /// A hash of the tokens, which identifies the action within the module.
    pub hash: u64,
    /// Names and types of the captured values.
    pub captures: &'static [(&'static str, &'static str)],
    /// Names and types of the form's fields.
    pub arguments: &'static [(&'static str, &'static str)],
    /// The access rule; `None`: the program's default.
    pub rule: Option<Rule>,
    /// Creates its route.
    pub route: fn(&'static Declaration) -> Route,
}

/// A declaration that `action!` registers with the linker.
#[derive(Debug)]
pub struct Linked(pub &'static Declaration);

inventory::collect!(Linked);

/// The result of an action's function: a [`ServiceOutput`], or a `Result` with one. The compiler
/// infers `Kind`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no answer of an action",
    note = "an action returns `()`, a value with `#[derive(Serialize)]`, `impl Page`, a `Response`, or `Result<.., bine::Error>` with one of these"
)]
pub trait ActionOutput<Kind> {
    /// The kind of the answer.
    type Kind: 'static;
    /// The answer if the function succeeds.
    type Output: ServiceOutput<Self::Kind> + 'static;

    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Output, Error>;
}

/// The kind of a result that cannot fail.
#[derive(Debug)]
pub struct PlainActionOutput<Kind>(PhantomData<Kind>);

/// The kind of a result that can fail.
#[derive(Debug)]
pub struct ResultActionOutput<Kind>(PhantomData<Kind>);

impl<A: ServiceOutput<K> + 'static, K: 'static> ActionOutput<PlainActionOutput<K>> for A {
    type Kind = K;
    type Output = A;

    fn into_result(self) -> Result<A, Error> {
        Ok(self)
    }
}

impl<A: ServiceOutput<K> + 'static, E: Into<Error>, K: 'static> ActionOutput<ResultActionOutput<K>>
    for Result<A, E>
{
    type Kind = K;
    type Output = A;

    fn into_result(self) -> Result<A, Error> {
        self.map_err(Into::into)
    }
}

/// Bytes of JSON that an action may capture.
const MAX_CAPTURED: usize = 4096;
/// The path prefix of actions.
const PATH_PREFIX: &str = "/_bine/action";

/// The routes of all linked actions.
///
/// # Errors
///
/// Two actions have the same name.
pub(crate) fn routes() -> Result<Vec<Route>, String> {
    let all = inventory::iter::<Linked>.into_iter().map(|linked| linked.0).collect();
    let mut routes: Vec<Route> =
        sort_unique(all)?.into_iter().map(|own| (own.route)(own)).collect();
    if !routes.is_empty() {
        routes.push(removed_route());
    }
    Ok(routes)
}

/// Sorts the actions, since the linker's order is arbitrary, and rejects duplicates.
fn sort_unique(mut all: Vec<&'static Declaration>) -> Result<Vec<&'static Declaration>, String> {
    all.sort_unstable_by_key(|own| (own.to_string(), own.module, own.line));
    match all.windows(2).find(|pair| pair[0].to_string() == pair[1].to_string()) {
        Some(pair) => Err(duplicate_error(pair[0], pair[1])),
        None => Ok(all),
    }
}

/// Whether the program has an action.
pub(crate) fn are_any() -> bool {
    inventory::iter::<Linked>.into_iter().next().is_some()
}

fn duplicate_error(one: &Declaration, other: &Declaration) -> String {
    let place = |own: &Declaration| format!("{} (line {})", own.module, own.line);
    let (here, there) = (place(one), place(other));
    match one.name {
        Some(name) => {
            format!(
                "two actions are called `{name}`, in {here} and in {there}; give one another name"
            )
        }
        None => format!(
            "two actions are the same, in {here} and in {there}; make it in a function that both call, or say `action!(name = \"..\", ..)` in one"
        ),
    }
}

/// The route that responds for actions that the program no longer has.
fn removed_route() -> Route {
    let path = concat!("/_bine/action/", "{name}/{sealed}");
    let route = Route::future(Methods::POST, path, "an action that is gone", |arguments| {
        let reads_pages = prefers_pages(arguments.incoming.head.field_text("accept"));
        let preference = ResponsePreference { reads_pages, is_safe: false, page: None };
        Ok(async move {
            let outcome: CallOutcome<()> = CallOutcome::Failed(outdated());
            CallReply {
                form_page: None,
                outcome,
                preference,
                visitor_session: None,
                kind: PhantomData,
            }
        })
    });
    // It has no effect, so anyone may call it.
    route.info(RouteInfo {
        kind: RouteKind::Action,
        rule: Some(Rule::ANYONE.access()),
        ..RouteInfo::default()
    })
}

impl Action {
    /// Creates an action with its captured values, in the order of the declaration.
    #[doc(hidden)]
    pub fn new(declaration: &'static Declaration, values: &[Captured]) -> Self {
        let mut json = b"{".to_vec();
        let mut fault = None;
        for ((name, _), Captured(value)) in declaration.captures.iter().zip(values) {
            if json.len() > 1 {
                json.push(b',');
            }
            // A Rust identifier needs no escapes.
            json.extend_from_slice(format!("\"{name}\":").as_bytes());
            match value {
                Ok(value) => json.extend_from_slice(value),
                Err(reason) => fault = Some(format!("`{name}` cannot be captured: {reason}")),
            }
        }
        json.push(b'}');
        if json.len() > MAX_CAPTURED {
            fault = Some(format!(
                "it captures {} bytes, and {MAX_CAPTURED} have room in an address: capture an id, and read the row in the action",
                json.len()
            ));
        }
        let captures = fault.map_or(Ok(json), Err);
        Self { declaration, captures }
    }
}

/// A captured value as JSON, or why it cannot be captured.
#[derive(Debug)]
pub struct Captured(Result<Vec<u8>, String>);

/// Captures a value. The declaration has its type.
#[doc(hidden)]
pub fn captured<T: Serialize>(value: &T) -> Captured {
    Captured(wire::to_json(value).map_err(|fault| fault.to_string()))
}

impl AttributeValue for Action {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        let Self { declaration, captures } = self;
        let sealed = match (captures, RenderContext::current()) {
            (Ok(captures), Some(writing)) => {
                let name = declaration.to_string();
                let (page, meaning) = (writing.page(), &*declaration.meaning());
                let content = Sealed { page, meaning, captures }.encode();
                Ok(format!("{PATH_PREFIX}/{name}/{}", writing.seal(&name, &content)))
            }
            (Err(reason), _) => Err(&**reason),
            (_, None) => Err(
                "it is written outside of a page's reply, or in a program without sessions: show it in a page that is neither frozen nor a `tree!`, and add `.sessions(Sessions::new())` to the app",
            ),
        };
        let address = sealed.unwrap_or_else(|reason| {
            static TOLD: Once = Once::new();
            TOLD.call_once(|| {
                let Declaration { module, line, .. } = declaration;
                log::error(format_args!(
                    "the action in {module} (line {line}) has no valid address: {reason}"
                ));
            });
            "about:invalid#action".to_owned()
        });
        address.write_attribute(attribute, writer);
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Action").field("declaration", self.declaration).finish_non_exhaustive()
    }
}

/// The name in its address, equal as long as the module and the tokens are equal.
impl fmt::Display for Declaration {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => to.write_str(name),
            None => {
                let mut parts = self.module.split("::");
                to.write_str(parts.next().unwrap_or_default())?;
                parts.try_for_each(|part| write!(to, ".{part}"))?;
                write!(to, ".{:016x}", self.hash)
            }
        }
    }
}

impl Declaration {
    /// The route of an action that runs as a transaction on the program's tables.
    #[doc(hidden)]
    pub fn changing<C, A, R, K, F>(&'static self, run: F) -> Route
    where
        F: Fn(&mut Call, C, A) -> R + Send + Sync + 'static,
        C: ServiceArguments + 'static,
        A: ServiceArguments + 'static,
        R: ActionOutput<K>,
        K: 'static,
    {
        let run = Arc::new(run);
        // A program creates each action once, so the leak is bounded.
        let name: &'static str = self.to_string().leak();
        let path: &'static str = format!("{PATH_PREFIX}/{name}/{{sealed}}").leak();
        let route = Route::future(Methods::POST, path, name, move |arguments| {
            let head = &arguments.incoming.head;
            let reads_pages = prefers_pages(head.field_text("accept"));
            let mut preference = ResponsePreference { reads_pages, is_safe: false, page: None };
            let context = Arc::new(CallContext::new(arguments.incoming, arguments.app));
            let mut sent_form = None;
            let admitted = self.admit::<C, A>(name, arguments, &context, &mut sent_form)?;
            let begun = admitted.map(|admitted| {
                preference.page = Some(admitted.page.clone());
                // The page is set once per call.
                let _ = context.page.set(admitted.page.clone());
                let (context, run) = (Arc::clone(&context), Arc::clone(&run));
                self.run(context, admitted, move |call, captures, arguments| {
                    run(call, captures, arguments).into_result()
                })
            });
            Ok(async move {
                let outcome = match begun {
                    Ok(work) => run_to_outcome(name, work).await,
                    Err(error) => CallOutcome::Failed(error),
                };
                CallReply {
                    form_page: outcome.form_page(sent_form).await,
                    outcome,
                    preference,
                    visitor_session: context.used_session(),
                    kind: PhantomData::<fn() -> R::Kind>,
                }
            })
        });
        let Self { arguments, rule, .. } = *self;
        let rule = rule.map(|rule| rule.access());
        let info = RouteInfo { kind: RouteKind::Action, arguments, rule, ..RouteInfo::default() };
        Route { info, ..route }.needing(&[|needs: &mut Needs| {
            needs.body(MOST_BODY);
            needs.sessions = true;
        }])
    }

    /// Runs the transaction, and runs it again after a conflict.
    fn run<C: ServiceArguments, A: ServiceArguments, R>(
        &'static self,
        context: Arc<CallContext>,
        admitted: Admitted<C, A>,
        run: impl Fn(&mut Call, C, A) -> Result<R, Error>,
    ) -> impl Future<Output = Result<R, Error>> {
        let store = context.store().clone();
        let mut call = Call::new(store.begin(), Caller::new(context));
        let Admitted { mut first, captures, given, .. } = admitted;
        let action = move |transaction: &mut Transaction| {
            let (captures, arguments) = match first.take() {
                Some(first) => first,
                // The arguments are read again after a conflict.
                None => (self.captures(&captures)?, take(&given, self.arguments)?),
            };
            call.within(transaction, |call| run(call, captures, arguments))
        };
        async move { store.change(action).await }
    }

    /// Checks whether the call is permitted and reads its arguments.
    fn admit<C: ServiceArguments, A: ServiceArguments>(
        &self,
        name: &'static str,
        arguments: &RequestParts<'_>,
        context: &Arc<CallContext>,
        sent_form: &mut Option<Box<SentForm>>,
    ) -> Result<Result<Admitted<C, A>, Error>, Rejection> {
        let head = &arguments.incoming.head;
        if origin::may_be_foreign(head) {
            return Ok(Err(Error::told(Status::FORBIDDEN, VisitorMessage::AnotherSiteCalls {})));
        }
        if let Err(refused) = rule_for(self.rule, arguments.app).admit(context) {
            return Ok(Err(refused));
        }
        let path = head.path();
        let sealed = path.rsplit('/').next().unwrap_or_default();
        let Some(opened) = context.visitor_session().open_seal(name, sealed) else {
            let message = VisitorMessage::PageOfOtherVisit {};
            return Ok(Err(Error::told(Status::FORBIDDEN, message)));
        };
        let kind = head.field_text("content-type").unwrap_or_default();
        let given = if CallArguments::is_readable(kind) {
            CallArguments::in_content(kind, &arguments.body(name)?)
        } else {
            Err(ArgumentsError::Unsupported)
        };
        Ok(given.map_err(ArgumentsError::into_error).and_then(|given| {
            let Sealed { page, meaning, captures } = Sealed::read(&opened).ok_or_else(outdated)?;
            if meaning != self.meaning() {
                return Err(outdated());
            }
            let (page, captures) = (page.to_owned(), CallArguments::captured(captures)?);
            let reads_pages = prefers_pages(head.field_text("accept"));
            let preference =
                ResponsePreference { reads_pages, is_safe: false, page: Some(page.clone()) };
            let sender = Arc::clone(context);
            *sent_form = SentForm::of(sender, &preference, given.texts(), Some((name, &opened)));
            let first = (self.captures(&captures)?, take(&given, self.arguments)?);
            Ok(Admitted { page, first: Some(first), captures, given })
        }))
    }

    /// A description of the captured names and types for a named action: its name stays equal when
    /// its captures change, while a hash changes.
    fn meaning(&self) -> String {
        if self.name.is_none() {
            return String::new();
        }
        let each = self.captures.iter().map(|(name, kind)| format!("{name}:{kind}"));
        // Removes white space: a type may span several lines.
        each.collect::<Vec<_>>().join(",").split_whitespace().collect()
    }

    /// Reads the captured values. It fails if a different version of the program sealed them.
    fn captures<C: ServiceArguments>(&self, sealed: &CallArguments) -> Result<C, Error> {
        C::take(sealed, self.captures).map_err(|_| outdated())
    }
}

/// A call that has passed all checks.
struct Admitted<C, A> {
    /// The page that contains the action.
    page: String,
    first: Option<(C, A)>,
    /// The captured values, for a second run after a conflict.
    captures: CallArguments,
    /// The form's fields, for a second run after a conflict.
    given: CallArguments,
}

/// The content of an action's address: a line with the page, a line with the
/// [meaning](Declaration::meaning), and the captured values.
struct Sealed<'s> {
    page: &'s str,
    meaning: &'s str,
    captures: &'s [u8],
}

impl<'s> Sealed<'s> {
    fn read(opened: &'s [u8]) -> Option<Self> {
        let mut lines = opened.splitn(3, |byte| *byte == b'\n');
        let mut line = || str::from_utf8(lines.next()?).ok();
        let (page, meaning) = (line()?, line()?);
        Some(Self { page, meaning, captures: lines.next()? })
    }

    fn encode(self) -> Vec<u8> {
        [self.page.as_bytes(), b"\n", self.meaning.as_bytes(), b"\n", self.captures].concat()
    }
}

fn take<A: ServiceArguments>(given: &CallArguments, names: &[(&str, &str)]) -> Result<A, Error> {
    A::take(given, names).map_err(|wrong| Error::of_arguments(Status::BAD_REQUEST, wrong))
}

/// The error for a page that a different version of the program rendered.
fn outdated() -> Error {
    Error::told(Status::GONE, VisitorMessage::PageOfOldProgram {})
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn action(module: &'static str, line: u32, name: Option<&'static str>) -> Declaration {
        let (captures, arguments): (&[_], &[_]) = (&[], &[]);
        let (rule, route): (_, fn(&'static Declaration) -> Route) = (None, |_| removed_route());
        Declaration { module, line, name, hash: 7, captures, arguments, rule, route }
    }

    #[test]
    fn named_action_with_other_captures_has_other_meaning() {
        let named = |captures| Declaration { captures, ..action("board", 1, Some("remove")) };
        let (own, other) = (named(&[("id", "Id < Post >")]), named(&[("id", "Id<Forum>")]));
        assert_eq!(own.meaning(), "id:Id<Post>");
        assert_ne!(own.meaning(), other.meaning());
        assert_ne!(own.meaning(), named(&[("post", "Id<Post>")]).meaning());
        let (meaning, captures) = (&*own.meaning(), &b"{\"id\":\n7}"[..]);
        let written = Sealed { page: "/board?a", meaning, captures }.encode();
        let read = Sealed::read(&written).unwrap();
        assert_eq!((read.page, read.meaning, read.captures), ("/board?a", meaning, captures));
        // The format of earlier versions.
        assert!(Sealed::read(b"/board?a\n{\"id\":7}").is_none());
    }

    #[test]
    fn rejects_duplicate_actions_with_both_places() {
        static FIRST: Declaration = action("board::forum", 10, None);
        static SAME: Declaration = action("board::forum", 40, None);
        static ELSEWHERE: Declaration = action("board", 10, None);
        static NAMED: Declaration = action("board", 20, Some("remove"));
        static AGAIN: Declaration = action("home", 30, Some("remove"));
        let apart = sort_unique(vec![&NAMED, &FIRST, &ELSEWHERE]).unwrap();
        let names: Vec<String> = apart.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["board.0000000000000007", "board.forum.0000000000000007", "remove"]);
        let told = sort_unique(vec![&SAME, &NAMED, &FIRST]).unwrap_err();
        assert!(told.contains("the same, in board::forum (line 10) and in board::forum (line 40)"));
        let told = sort_unique(vec![&AGAIN, &FIRST, &NAMED]).unwrap_err();
        assert!(told.contains("called `remove`, in board (line 20) and in home (line 30)"));
    }
}
