//! The names by which scripts import the services of the program in Rust.

use std::collections::BTreeMap;

use super::in_process::{NamedService, ServiceDirectory};

/// The services that scripts import, ordered by their names.
pub(crate) fn named(services: &ServiceDirectory) -> impl Iterator<Item = (&str, &NamedService)> {
    grouped(services).into_iter().filter_map(|(name, services)| match services[..] {
        [service] if is_name(name) => Some((name, service)),
        _ => None,
    })
}

/// The names of services that scripts cannot import, each with the reason.
pub(crate) fn unnamed(services: &ServiceDirectory) -> impl Iterator<Item = (&str, String)> {
    grouped(services).into_iter().filter_map(|(name, services)| match services[..] {
        [_] if is_name(name) => None,
        [_] => Some((name, "JavaScript has no such name".to_owned())),
        _ => {
            let all: Vec<&str> = services.iter().map(|own| own.name).collect();
            Some((name, format!("several services have this name: {}", all.join(", "))))
        }
    })
}

fn grouped(services: &ServiceDirectory) -> BTreeMap<&str, Vec<&NamedService>> {
    let mut named: BTreeMap<&str, Vec<&NamedService>> = BTreeMap::new();
    for service in services.iter() {
        named.entry(service.function()).or_default().push(service);
    }
    named
}

/// Raw identifiers of Rust, as in `r#type`, cannot be names of JavaScript.
fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
