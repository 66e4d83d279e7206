//! Services that forms and buttons name in markup, compared with those of the program when it
//! starts.
//!
//! `html!` registers each `action={services::add}` and `formaction={..}` with the linker. A binary
//! may contain pages and services that a program does not use, so a reference is an error only in a
//! function that the program has registered; elsewhere it is a warning.

use std::fmt;

use bine_log as log;

use super::{Callable, Signature};
use crate::linked_feature::LinkedFeature;
use crate::route::{Route, RouteKind};

/// A path in the value of `action` or `formaction`, which may name a service.
#[derive(Debug)]
pub struct ServiceReference {
    /// The path of a function inside the function that contains the markup.
    pub place: fn() -> &'static str,
    /// The file of the markup.
    pub file: &'static str,
    /// The line of the value.
    pub line: u32,
    /// The value as it is written.
    pub text: &'static str,
    /// The service that it names, if it names one.
    pub find: fn() -> Option<&'static Signature>,
}

inventory::collect!(ServiceReference);

/// A name in the value of `action` or `formaction` that may be a variable of a page or a service.
#[derive(Debug)]
pub struct LocalVariable {
    /// The path of a function inside the page or the service.
    pub place: fn() -> &'static str,
    /// The name.
    pub name: &'static str,
}

inventory::collect!(LocalVariable);

/// Finds out whether a value is the name of a service. For any other value, the compiler selects
/// the method of [`NoService`] instead.
#[derive(Debug)]
pub struct ServiceProbe<'v, T: ?Sized>(pub &'v T);

impl<F: Callable + Copy> ServiceProbe<'_, F> {
    /// The service.
    pub fn signature(&self) -> Option<&'static Signature> {
        Some((*self.0).service().signature)
    }
}

/// The probe of a value that is not the name of a service.
pub trait NoService {
    /// No service.
    fn signature(&self) -> Option<&'static Signature> {
        None
    }
}

impl<T: ?Sized> NoService for ServiceProbe<'_, T> {}

/// A reference to a service that the program does not have.
struct MissingService<'r> {
    reference: &'r ServiceReference,
    service: &'static str,
}

impl fmt::Display for MissingService<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reference: ServiceReference { file, line, text, .. }, service } = self;
        write!(
            to,
            "{file}:{line} names the service {service}, which the program does not have; add `.service({text})` to the app"
        )
    }
}

/// Checks that the program has each service that its own functions name in markup. `functions`: the
/// paths of the functions that render pages.
///
/// # Errors
///
/// Returns a message that names the function, the place, the service and the correction.
pub(crate) fn check_references(functions: &[&str], routes: &[Route]) -> Result<(), String> {
    let found = missing(all(), routes).into_iter().find_map(|missing| {
        let function = enclosing(functions, &missing)?;
        if may_be_variable(function, &missing, routes) {
            return None;
        }
        Some(format!("{function} has a form that cannot be sent: {missing}"))
    });
    found.map_or(Ok(()), Err)
}

/// Logs which services the program lacks that other functions of its own crates name in markup: any
/// page may call them.
pub(crate) fn log_references(functions: &[&str], routes: &[Route]) {
    if LinkedFeature::has_many_programs() {
        return;
    }
    for missing in missing(all(), routes) {
        let is_told = match enclosing(functions, &missing) {
            Some(function) => {
                may_be_variable(function, &missing, routes) && !is_declared(function, &missing)
            }
            None => is_of_program(functions, place(&missing)),
        };
        if is_told {
            log::warn(format_args!("a form may not be sent: {missing}"));
        }
    }
}

/// Whether this path has the crate of a function of the program.
pub(crate) fn is_of_program(functions: &[&str], path: &str) -> bool {
    functions.iter().any(|function| crate_of(function) == crate_of(path))
}

fn crate_of(path: &str) -> &str {
    path.split_once("::").map_or(path, |(name, _)| name)
}

fn all() -> Vec<&'static ServiceReference> {
    let mut all: Vec<_> = inventory::iter::<ServiceReference>.into_iter().collect();
    // The order of the linker is arbitrary.
    all.sort_unstable_by_key(|reference| (reference.file, reference.line, reference.text));
    all
}

fn missing<'r>(references: Vec<&'r ServiceReference>, routes: &[Route]) -> Vec<MissingService<'r>> {
    let has = |service: &str| {
        let mut services = routes.iter().filter(|route| route.info.kind == RouteKind::Service);
        services.any(|route| route.name == service)
    };
    let references = references.into_iter();
    let missing = references.filter_map(|reference| {
        let service = (reference.find)()?.name;
        (!has(service)).then_some(MissingService { reference, service })
    });
    missing.collect()
}

fn place(missing: &MissingService<'_>) -> &'static str {
    (missing.reference.place)()
}

/// The function of the program that contains the markup.
fn enclosing<'f>(functions: &[&'f str], missing: &MissingService<'_>) -> Option<&'f str> {
    let place = place(missing);
    let is_around = |function: &&&str| {
        place.strip_prefix(**function).is_some_and(|inside| inside.starts_with("::"))
    };
    functions.iter().find(is_around).copied()
}

/// Whether the value may be a variable of the function instead of the service that has its name in
/// the module. The variables of a layout or an error page, which have no macro, are unknown.
fn may_be_variable(function: &str, missing: &MissingService<'_>, routes: &[Route]) -> bool {
    let is_single = !missing.reference.text.contains("::");
    let is_known = routes.iter().any(|route| route.name == function);
    is_single && (!is_known || is_declared(function, missing))
}

/// Whether the page or the service has a variable with the name.
fn is_declared(function: &str, missing: &MissingService<'_>) -> bool {
    inventory::iter::<LocalVariable>.into_iter().any(|variable| {
        let is_inside = (variable.place)()
            .strip_prefix(function)
            .is_some_and(|inside| inside.starts_with("::"));
        is_inside && variable.name == missing.reference.text
    })
}
