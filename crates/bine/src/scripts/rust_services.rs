//! The module `bine:services`, from which scripts import the services of the program in Rust.

use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::service::import_names::named;
use crate::service::in_process::ServiceDirectory;

/// The text of the module: a function for each service whose name no other one has.
pub(super) fn module(services: &ServiceDirectory) -> String {
    let mut text = String::from("import { rustService } from \"bine:internal/context\";");
    for (name, service) in named(services) {
        let path = Json::from(service.path);
        // A `String` takes any text.
        let _ =
            write!(text, "const s_{name} = rustService({path}); export {{ s_{name} as {name} }};");
    }
    text
}
