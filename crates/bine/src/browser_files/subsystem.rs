//! The files of the browser as a subsystem of a program: its routes, and the types for editors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bine_log as log;

use super::{BrowserModule, ImportedService};
use crate::browser_services;
use crate::bundled_asset::{BundledAsset, script_path};
use crate::linked_feature::LinkedFeature;
use crate::route::Route;
use crate::service::in_process::ServiceDirectory;
use crate::service::type_declarations;
use crate::subsystem::{Definition, Outline, Registration, Start, Subsystem};

/// The module with the services that files import. Its URL has no hash, because the macro writes it into
/// code before the services of the program are known.
const SERVICES: &str = "/_bine/services.js";

/// The files of the browser of a program that has not started.
#[derive(Default)]
struct BrowserFileSubsystem {
    /// Whether the program has such files.
    is_used: bool,
    services: ServiceDirectory,
    /// Why the program cannot start.
    failure: Option<String>,
}

inventory::submit! {
    Registration { rank: 17, create: || Box::new(BrowserFileSubsystem::default()) }
}

impl Subsystem for BrowserFileSubsystem {
    fn routes(&mut self, outline: &Outline<'_>) -> Vec<Route> {
        let modules: BTreeMap<&str, &str> =
            inventory::iter::<BrowserModule>.into_iter().map(|one| (one.path, one.code)).collect();
        // A program without pages has no use for them.
        if modules.is_empty() || outline.routes.is_empty() {
            return Vec::new();
        }
        self.is_used = true;
        self.services = ServiceDirectory::of(outline.routes);
        let mut routes: Vec<Route> = modules
            .into_iter()
            .map(|(path, code)| BundledAsset::module(path, code).route())
            .collect();
        let mut imports: Vec<_> = inventory::iter::<ImportedService>.into_iter().collect();
        // The order of the linker is arbitrary.
        imports.sort_unstable_by_key(|own| (own.name, own.source, own.file, own.line, own.column));
        let mut paths = BTreeMap::new();
        for import in &imports {
            let found = self.services.named(import.name);
            paths.insert(import.name, found.as_ref().ok().map(|service| service.path));
            if let Err(reason) = found {
                self.report(import, &reason, outline.routes);
            }
        }
        if !imports.is_empty() {
            // The leak is bounded: a program has one such module, for its whole life.
            let text = browser_services::module(script_path(), paths).leak();
            routes.push(BundledAsset::services(SERVICES, text).route());
        }
        routes
    }

    fn write_types(&self, _outline: &Outline<'_>) -> Option<Result<String, String>> {
        self.is_used.then(|| type_declarations::write_for_browsers(&folder(), &self.services))
    }

    fn define(&mut self, _definition: &mut Definition) -> Result<(), String> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn start(&mut self, start: &Start<'_>) -> Result<(), String> {
        let develops = start.configuration.development.unwrap_or(cfg!(debug_assertions));
        if develops
            && self.is_used
            && let Err(reason) = type_declarations::refresh_for_browsers(&folder(), &self.services)
        {
            log::warn(format_args!("{reason}; editors do not know the services in Rust"));
        }
        Ok(())
    }
}

impl BrowserFileSubsystem {
    /// Reports a service that the program does not have: an error if one of its functions is in the
    /// module that has the file. Other modules may belong to another program with the same libraries.
    fn report(&mut self, import: &ImportedService, reason: &str, routes: &[Route]) {
        let ImportedService { module, line, column, .. } = import;
        let is_inside = |function: &str| {
            function.strip_prefix(module).is_some_and(|rest| rest.starts_with("::"))
        };
        let file = Path::new(import.source).with_file_name(import.file);
        let message = format!("{}:{line}:{column}: {reason}", file.display());
        if routes.iter().any(|route| is_inside(route.name)) {
            self.failure.get_or_insert(message);
        } else if !LinkedFeature::has_many_programs() {
            log::warn(format_args!("{message}"));
        }
    }
}

/// The folder of the package, in which the editor finds the types: that of the package which cargo runs,
/// or else the current one.
fn folder() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from)
}
