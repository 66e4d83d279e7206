//! The functions of the host for a start script: its declarations, and the request of a filter.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bine_files::FieldRule;
use bine_http::Head;
use bine_script::{HostCall, HostError, HostModule, Value};
use bine_server::{Body, Incoming, Retained};

use super::paths::FilterPaths;
use crate::access_guard::{DeclaredGroup, DeclaredRule, DeclaredRules};
use crate::filter::FilterRequest;
use crate::request_session::SessionProvider;
use crate::rights::{check_group, check_rule};

/// The name of the source of rules in lists.
const SOURCE: &str = "start.ts";
/// The most rules and groups of one script.
const MAX_DECLARATIONS: usize = 10_000;

/// The rules that a script declares while it loads.
pub(super) type Declarations = Rc<RefCell<DeclaredRules>>;

/// No rules yet.
pub(super) fn declarations() -> Declarations {
    Rc::new(RefCell::new(DeclaredRules { source: SOURCE, ..DeclaredRules::default() }))
}

/// The request that a filter sees: a copy without its body, since a script keeps no borrow.
pub(super) struct FilterCall {
    request: Retained,
    sessions: Option<Arc<dyn SessionProvider>>,
}

impl FilterCall {
    pub(super) fn of(request: &FilterRequest<'_>) -> Self {
        let incoming = Incoming { body: Body::None, ..*request.incoming() };
        Self { request: Retained::of(&incoming), sessions: request.sessions().cloned() }
    }

    /// Reads a part of the request, which a live page that is rendered then depends on.
    fn read<T>(
        call: &HostCall<'_, '_>,
        part: impl FnOnce(&FilterRequest<'_>) -> T,
    ) -> Result<T, HostError> {
        let own = call.context().and_then(|context| context.downcast::<Self>().ok());
        let own = own.ok_or_else(|| {
            HostError::Other("a request can be read only while its filter runs".to_owned())
        })?;
        let incoming = own.request.incoming();
        let sessions = own.sessions.as_ref();
        Ok(part(&FilterRequest { incoming: &incoming, path: "", sessions }))
    }
}

/// The module `bine:internal/start-host`.
pub(super) fn host_module(declared: &Declarations) -> HostModule {
    let (of_rules, of_groups) = (Rc::clone(declared), Rc::clone(declared));
    HostModule::new("bine:internal/start-host")
        .function("rule", move |call| {
            let rule = DeclaredRule {
                pattern: call.text(0)?,
                right: call.text(1)?,
                who: texts(call, 2, "who has a right is named by strings, such as \"users\"")?,
            };
            check_rule(&rule).map_err(HostError::Type)?;
            let mut declared = of_rules.borrow_mut();
            check_count(declared.rules.len())?;
            declared.rules.push(rule);
            Ok(Value::Undefined)
        })
        .function("group", move |call| {
            let name = call.text(0)?;
            let members = texts(call, 1, "the members of a group are strings")?;
            let group = DeclaredGroup { name, members };
            check_group(&group).map_err(HostError::Type)?;
            let mut declared = of_groups.borrow_mut();
            check_count(declared.groups.len())?;
            declared.groups.push(group);
            Ok(Value::Undefined)
        })
        .function("checkPaths", |call| {
            let paths = texts(call, 0, "the `paths` of a filter are a list of strings")?;
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            FilterPaths::parse(&paths).map_err(HostError::Type)?;
            Ok(Value::Undefined)
        })
        .function("checkField", |call| {
            FieldRule::new("*", &call.text(0)?, &call.text(1)?).map_err(HostError::Type)?;
            Ok(Value::Undefined)
        })
        .function("checkType", |call| {
            // The server itself sets the field for files, so that a rule may not.
            FieldRule::new("*", "X-Type", &call.text(0)?).map_err(|_| {
                HostError::Type(
                    "the `type` of `respond` is a media type, like \"text/html; charset=utf-8\""
                        .to_owned(),
                )
            })?;
            Ok(Value::Undefined)
        })
        .function("requestHost", |call| FilterCall::read(call, |request| optional(request.host())))
        .function("address", |call| {
            FilterCall::read(call, |request| {
                let address = request.client_address().ip();
                optional(address.map(|address| address.to_string()).as_deref())
            })
        })
        .function("header", |call| {
            let name = call.text(0)?;
            FilterCall::read(call, |request| optional(request.header(&name)))
        })
        .function("user", |call| {
            FilterCall::read(call, |request| match request.user() {
                Some(user) => Value::Object(vec![("name".to_owned(), Value::from(user))]),
                None => Value::Null,
            })
        })
}

fn optional(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::from)
}

/// An argument that is a list of strings.
fn texts(call: &HostCall<'_, '_>, index: usize, reason: &str) -> Result<Vec<String>, HostError> {
    let wrong = || HostError::Type(reason.to_owned());
    let Value::Array(items) = call.value(index)? else { return Err(wrong()) };
    let text = |item| match item {
        Value::Text(text) => Ok(text),
        _ => Err(wrong()),
    };
    items.into_iter().map(text).collect()
}

fn check_count(count: usize) -> Result<(), HostError> {
    if count < MAX_DECLARATIONS {
        return Ok(());
    }
    Err(HostError::Type(format!(
        "start.ts declares more than {MAX_DECLARATIONS} rules or groups: store them by `bine user grant`"
    )))
}

/// The query of a request without its question mark.
pub(super) fn query_of<'h>(head: &Head<'h>) -> &'h str {
    head.query().unwrap_or_default()
}
