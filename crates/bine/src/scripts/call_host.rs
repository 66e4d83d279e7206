//! The functions of the host for pages and services: the request, the visitor and live regions.

use bine_script::{HostCall, HostError, HostModule, Value};
use serde_json::{Map, Value as Json};

use super::call_state::CallState;
use super::folders::AppFolder;
use super::json;

/// The module `bine:internal/call`.
pub(super) fn host_module(app: &AppFolder) -> HostModule {
    let url = if app.path.is_empty() { String::new() } else { format!("/{}", app.path) };
    HostModule::new("bine:internal/call")
        .value("base", Value::Text(url.clone()))
        .function("serviceUrl", move |call| Ok(Value::Text(format!("{url}/{}", call.text(0)?))))
        .function("region", |call| {
            let state = CallState::of(call)?;
            match call.value(0)? {
                Value::Html(markup) => {
                    let region = state.end_region();
                    Ok(Value::Html(markup.in_region(region)))
                }
                other => Err(HostError::Type(format!(
                    "the content of a <Live> region is markup, not {}",
                    other.kind()
                ))),
            }
        })
        .async_function("change", |call| {
            let (state, function) = (CallState::of(call)?, call.function(0)?);
            Ok(state.change_by(function))
        })
        .function("isChanging", |call| Ok(Value::Bool(CallState::of(call)?.is_changing())))
        .function("joinService", |call| {
            let (state, path) = (CallState::of(call)?, call.text(0)?);
            state.join_service(&path, service_arguments(call)?)
        })
        .async_function("callService", |call| {
            let (state, path) = (CallState::of(call)?, call.text(0)?);
            let arguments = service_arguments(call)?;
            Ok(async move { state.call_service(&path, arguments).await })
        })
        .function("user", |call| {
            let user = CallState::of(call)?.user()?;
            let named = |user| Value::Object(vec![("name".to_owned(), Value::Text(user))]);
            Ok(user.map_or(Value::Null, named))
        })
        .function("visitorName", |call| Ok(Value::Text(CallState::of(call)?.visitor_name()?)))
        .function("title", |call| Ok(CallState::of(call)?.title().map_or(Value::Null, Value::Text)))
        .function("setTitle", |call| {
            let state = CallState::of(call)?;
            match call.value(0)? {
                Value::Text(title) => state.set_title(title).map(|()| Value::Undefined),
                other => Err(HostError::Type(format!(
                    "the title of a page is a string, not {}",
                    other.kind()
                ))),
            }
        })
        .function("setCompression", |call| {
            let state = CallState::of(call)?;
            match call.value(0)? {
                Value::Bool(is_compressed) => state.set_compression(is_compressed),
                other => {
                    return Err(HostError::Type(format!(
                        "the `compress` that a page exports is true or false, not {}",
                        other.kind()
                    )));
                }
            }
            Ok(Value::Undefined)
        })
        .function("path", |call| Ok(CallState::of(call)?.path().map_or(Value::Null, Value::Text)))
        .function("header", |call| {
            let (state, name) = (CallState::of(call)?, call.text(0)?);
            Ok(state.header(&name)?.map_or(Value::Null, Value::Text))
        })
}

/// The arguments of a call of a service, which are the second argument of the host's function.
fn service_arguments(call: &HostCall<'_, '_>) -> Result<Map<String, Json>, HostError> {
    match call.value(1)? {
        Value::Object(entries) => json::object(entries).map_err(HostError::Type),
        other => Err(HostError::Type(format!(
            "the arguments of a service are an object, with each under its name, not {}",
            other.kind()
        ))),
    }
}
