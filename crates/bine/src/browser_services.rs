//! The module of the browser with functions that call services: `"bine:services"` for files of the
//! browser.

use std::fmt::Write as _;

use serde_json::Value as Json;

/// The text of the module. `script`: the URL of the script of pages, relative or absolute. `services`:
/// the name of each service and its path; without a path, the function is always rejected.
pub(crate) fn module<'s>(
    script: &str,
    services: impl IntoIterator<Item = (&'s str, Option<&'s str>)>,
) -> String {
    let mut text = format!("import{{call}}from{};\n", Json::from(script));
    for (number, (name, path)) in services.into_iter().enumerate() {
        let value = match path {
            Some(path) => format!("(values)=>call({},values)", Json::from(path)),
            None => {
                let reason = format!("the program has no service `{name}`");
                format!("()=>Promise.reject(new Error({}))", Json::from(reason))
            }
        };
        // A `String` takes any text. A service may have a name that no variable may have.
        let _ =
            writeln!(text, "const s{number}={value};export{{s{number} as {}}};", Json::from(name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_a_function_for_each_service() {
        let text = module("./live.js", [("add", Some("/shop/add")), ("lost", None)]);
        assert_eq!(
            text,
            "import{call}from\"./live.js\";\n\
             const s0=(values)=>call(\"/shop/add\",values);export{s0 as \"add\"};\n\
             const s1=()=>Promise.reject(new Error(\"the program has no service `lost`\"));export{s1 as \"lost\"};\n"
        );
    }
}
