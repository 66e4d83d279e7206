//! `browser_file!`: a file of TypeScript for the browser, and a Rust constant for each function that it
//! exports.
//!
//! `bine-tsx` compiles the file and those that it imports. The linker of the program collects them.

use std::collections::HashMap;

use bine_tsx::{
    BrowserFunction, BrowserHost, BrowserLinker, Import, ImportKind, Module, Position,
    browser_hash, compile, is_browser_file,
};

use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::literal;
use crate::module_head::ModuleHead;
use crate::token::Token;

/// Reads the file named by a literal, relative to the literal's own file.
pub(crate) type ReadFile<'s> = &'s dyn Fn(&Token, &str) -> Result<String, String>;

/// The folder of the modules in URLs.
const FOLDER: &str = "/_bine/";
/// The modules of the server, relative to that folder.
const SCRIPT: &str = "./live.js";
const SERVICES: &str = "./services.js";

const FORM: &str =
    "expected a module and the name of a file: `browser_file!(mod cart = \"cart.browser.ts\")`";

/// Expands `browser_file!`. The first token is a bracket with the path of the `bine` crate; `mod name =`
/// and the path of a file follow.
pub(crate) fn browser_file(tokens: &[Token], read: ReadFile<'_>) -> Expansion {
    let (head, tokens) = ModuleHead::read(tokens, "=");
    let mut expansion = Expansion::default();
    let (name, token, path) = match parameters(&head, tokens) {
        Ok(found) => found,
        Err(fault) => {
            expansion.faults.push(fault);
            return expansion;
        }
    };
    let read = |path: &str| read(token, path);
    let mut files = Files { read: &read, ..Files::new() };
    let linked = BrowserLinker::default().link(&mut files, &path, None);
    let functions = files.functions(&path, linked.is_some());
    let faults = files.errors.iter().map(|error| Fault::new(token, error.as_str()));
    expansion.faults.extend(faults);

    expansion.code(&format!("#[doc = {:?}]", format!("The functions of `{path}`.")));
    // Other files of the browser may use functions that the program does not.
    expansion.code(
        "#[allow(dead_code, non_upper_case_globals, unreachable_pub, reason = \"named by the file\")]",
    );
    expansion.run(head.visibility);
    expansion.code("mod");
    expansion.run(std::slice::from_ref(name));
    expansion.code("{");
    let url = format!("{FOLDER}{}", linked.as_deref().unwrap_or_default());
    for (index, function) in functions.iter().enumerate() {
        let BrowserFunction { name, acts_at_once, .. } = function;
        expansion.code(&format!("#[doc = {:?}]", format!("`{name}` of `{path}`.")));
        // A raw identifier, because a function may have the name of a Rust keyword.
        expansion.code(&format!("pub const r#{name}:"));
        expansion.run(head.krate);
        expansion.code("::BrowserFunction =");
        expansion.run(head.krate);
        expansion.code("::BrowserFunction::new(");
        expansion.string(&url);
        expansion.code(&format!(", {index}, {acts_at_once}, "));
        expansion.string(name);
        expansion.code(");");
    }
    expansion.code("}");
    files.submit(&mut expansion, head.krate);
    expansion
}

/// The name of the module, the token of the path, and the path.
fn parameters<'t>(
    head: &ModuleHead<'t>,
    tokens: &'t [Token],
) -> Result<(&'t Token, &'t Token, String), Fault> {
    let (Some(name), [token]) = (head.module, tokens) else {
        return Err(tokens
            .first()
            .map_or_else(|| Fault::at(Fault::WHOLE, FORM), |first| Fault::new(first, FORM)));
    };
    let path = literal::string(token).ok_or_else(|| Fault::new(token, FORM))??;
    if !is_browser_file(&path) {
        let message = "the name of a file of the browser ends with `.browser.ts`";
        return Err(Fault::new(token, message));
    }
    Ok((name, token, path))
}

/// The files that a program names, and those that they import.
struct Files<'s> {
    read: &'s dyn Fn(&str) -> Result<String, String>,
    modules: HashMap<String, Module>,
    /// The files that exist, in the order in which they were read.
    paths: Vec<String>,
    /// The linked modules: the name in the URL, and the code.
    linked: Vec<(String, String)>,
    /// The services that files import, with their places.
    services: Vec<(String, String, Position)>,
    errors: Vec<String>,
}

impl Files<'_> {
    fn new() -> Self {
        Self {
            read: &|_| Err(String::new()),
            modules: HashMap::new(),
            paths: Vec::new(),
            linked: Vec::new(),
            services: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// The exported functions of the file that the program names. Reports those that Rust cannot name.
    fn functions(&mut self, path: &str, is_linked: bool) -> Vec<BrowserFunction> {
        let Some(module) = self.modules.get(path) else { return Vec::new() };
        let mut faults = Vec::new();
        let default = module.facts.exports.iter().find(|export| export.name == "default");
        if let Some(default) = default {
            let reason = "the program uses functions by their names: `export const add = ..`, and no default export";
            faults.push((default.position, reason.to_owned()));
        } else if module.functions.is_empty() && is_linked {
            let reason =
                "the file exports no function: `export const add = (event: MouseEvent) => { .. }`";
            faults.push((Position { line: 1, column: 1 }, reason.to_owned()));
        }
        let mut functions = module.functions.clone();
        functions.retain(|function| {
            let is_valid = is_rust_name(&function.name);
            if !is_valid {
                let reason = format!(
                    "`{}` is not a valid Rust name: export the function by another name",
                    function.name
                );
                faults.push((function.position, reason));
            }
            is_valid
        });
        for (position, reason) in faults {
            self.refuse(path, position, &reason);
        }
        functions
    }

    /// Registers the modules with the linker.
    fn submit(&self, expansion: &mut Expansion, krate: &[Token]) {
        expansion.code("const _: () = {");
        for path in &self.paths {
            // Makes the compiler rebuild when the file changes.
            expansion.code("const _: &[::core::primitive::u8] = ::core::include_bytes!(");
            expansion.string(path);
            expansion.code(");");
        }
        for (name, code) in self.linked.iter().filter(|_| self.errors.is_empty()) {
            submit(expansion, krate, "BrowserModule");
            expansion.code("{ path:");
            expansion.string(&format!("{FOLDER}{name}"));
            expansion.code(", code:");
            expansion.string(code);
            expansion.code("} }");
        }
        for (service, file, Position { line, column }) in &self.services {
            submit(expansion, krate, "ImportedService");
            expansion.code("{ name:");
            expansion.string(service);
            expansion.code(", module: ::core::module_path!(), source: ::core::file!(), file:");
            expansion.string(file);
            expansion.code(&format!(", line: {line}, column: {column} }} }}"));
        }
        submit(expansion, krate, "LinkedFeature");
        expansion.code("::Handler } };");
    }
}

/// Begins a registration of a type.
fn submit(expansion: &mut Expansion, krate: &[Token], kind: &str) {
    expansion.run(krate);
    expansion.code("::__private::submit! {");
    expansion.run(krate);
    expansion.code(&format!("::__private::{kind}"));
}

impl BrowserHost for Files<'_> {
    fn module(&mut self, file: &str, importer: Option<(&str, Position)>) -> Option<&Module> {
        let source = match (self.read)(file) {
            Ok(source) => source,
            Err(error) => {
                let reason = format!("cannot read `{file}`: {error}");
                match importer {
                    Some((importer, position)) => self.refuse(importer, position, &reason),
                    None => self.errors.push(reason),
                }
                return None;
            }
        };
        self.paths.push(file.to_owned());
        match compile(file, &source) {
            Ok(module) => Some(self.modules.entry(file.to_owned()).insert_entry(module).into_mut()),
            Err(errors) => {
                self.errors.extend(errors.iter().map(ToString::to_string));
                None
            }
        }
    }

    fn resolve(&self, file: &str, specifier: &str) -> Option<String> {
        let mut parts: Vec<&str> = file.split('/').collect();
        parts.pop();
        for part in specifier.split('/') {
            match part {
                "." => {}
                ".." if parts.last().is_some_and(|last| *last != "..") => {
                    parts.pop();
                }
                name => parts.push(name),
            }
        }
        Some(parts.join("/"))
    }

    fn built_in(&mut self, file: &str, import: &Import) -> Result<String, String> {
        if import.kind == ImportKind::Browser {
            return Ok(SCRIPT.to_owned());
        }
        let services = import.names.iter();
        let services = services.map(|name| (name.clone(), file.to_owned(), import.position));
        self.services.extend(services);
        Ok(SERVICES.to_owned())
    }

    fn keep(&mut self, file: &str, code: String) -> String {
        let module = self.modules.get(file);
        let has_default =
            |module: &&Module| module.facts.exports.iter().any(|export| export.name == "default");
        let functions = module.filter(|module| !has_default(module));
        let functions = functions.map_or(&[][..], |module| &module.functions);
        let code = if functions.is_empty() {
            code
        } else {
            // The script of pages calls `default[index](values)(event)`, as for handlers in TSX. Every
            // file has this export, so that it is the same module for all that import it.
            let names: Vec<_> = functions.iter().map(|function| function.local.as_str()).collect();
            let names = names.join(",");
            format!("{code}\nexport default[{names}].map((f)=>([data])=>(event)=>f(event,data));\n")
        };
        let stem = file.rsplit('/').next().and_then(|name| name.split(".browser.").next());
        let is_plain = |stem: &&str| {
            !stem.is_empty()
                && stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let stem = stem.filter(is_plain).unwrap_or("file");
        let name = format!("{stem}-{}.js", browser_hash(&code));
        self.linked.push((name.clone(), code));
        name
    }

    fn refuse(&mut self, file: &str, position: Position, reason: &str) {
        let Position { line, column } = position;
        self.errors.push(format!("{file}:{line}:{column}: {reason}"));
    }
}

fn is_rust_name(name: &str) -> bool {
    !["_", "self", "Self", "super", "crate"].contains(&name)
        && name.chars().all(|letter| letter == '_' || letter.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    const CALL: &str = "[bine] mod cart = \"shop/cart.browser.ts\"";

    fn expanded(call: &str, files: &[(&str, &str)]) -> (Expansion, Sample) {
        let sample = Sample::new(call);
        let read = |_: &Token, path: &str| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "not there".to_owned())
        };
        (browser_file(&sample.tokens, &read), sample)
    }

    /// Checks the faults, each after its token.
    #[track_caller]
    fn check(call: &str, files: &[(&str, &str)], expected: &str) {
        let (expansion, sample) = expanded(call, files);
        assert_eq!(sample.report(&expansion.faults), expected);
    }

    /// Checks the faults of a file, without its name.
    #[track_caller]
    fn check_file(source: &str, expected: &str) {
        let expected = format!("\"shop/cart.browser.ts\": shop/cart.browser.ts:{expected}");
        check(CALL, &[("shop/cart.browser.ts", source)], &expected);
    }

    #[test]
    fn makes_a_constant_of_each_function() {
        let files = [
            (
                "shop/cart.browser.ts",
                "import { put } from \"bine:services\";\nimport { cut } from \"../cut.browser.ts\";\nexport const add = (event: Event, id: string) => put({ id: cut(id) });\nexport function close(event: Event) { event.preventDefault(); }\n",
            ),
            ("cut.browser.ts", "export const cut = (a: string) => a.slice(1);\n"),
        ];
        let (expansion, sample) = expanded(CALL, &files);
        assert_eq!(sample.report(&expansion.faults), "");
        let code = sample.spell(&expansion);
        let (head, rest) = code.split_once("(\"/_bine/cart-").expect("a URL");
        assert!(
            head.ends_with("pub const r#add: bine ::BrowserFunction = bine ::BrowserFunction::new"),
            "{head}"
        );
        assert!(rest.contains(".js\", 0, false, \"add\");"), "{rest}");
        assert!(rest.contains(".js\", 1, true, \"close\");}const _: () = {const _: &[::core::primitive::u8] = ::core::include_bytes!(\"shop/cart.browser.ts\");"), "{rest}");
        assert!(rest.contains("include_bytes!(\"cut.browser.ts\");"), "{rest}");
        assert!(rest.contains("import { cut } from \\\"./cut-"), "{rest}");
        assert!(rest.contains("export default[add,close].map("), "{rest}");
        assert!(rest.contains("::ImportedService{ name:\"put\", module: ::core::module_path!(), source: ::core::file!(), file:\"shop/cart.browser.ts\", line: 1, column: 21 }"), "{rest}");
    }

    #[test]
    fn equal_files_have_equal_urls() {
        let url = |source| {
            let (expansion, _) = expanded(CALL, &[("shop/cart.browser.ts", source)]);
            let (_, rest) = expansion.code.split_once("/_bine/").expect("a URL");
            rest.split('"').next().map(str::to_owned)
        };
        let own = url("export const a = () => 1;");
        assert_eq!(own, url("export const a = () => 1;"));
        assert_ne!(own, url("export const a = () => 2;"));
    }

    #[test]
    fn reports_a_wrong_call() {
        let form = "expected a module and the name of a file: `browser_file!(mod cart = \"cart.browser.ts\")`";
        check("[bine] \"cart.browser.ts\"", &[], &format!("\"cart.browser.ts\": {form}"));
        check("[bine] mod cart = cart", &[], &format!("cart: {form}"));
        check("[bine] mod cart = \"a\" \"b\"", &[], &format!("\"a\": {form}"));
        check(
            "[bine] mod cart = \"cart.ts\"",
            &[],
            "\"cart.ts\": the name of a file of the browser ends with `.browser.ts`",
        );
        check(CALL, &[], "\"shop/cart.browser.ts\": cannot read `shop/cart.browser.ts`: not there");
    }

    #[test]
    fn reports_mistakes_in_files_with_their_places() {
        check_file(
            "export const add = () => 1;\nconst = 2;\n",
            "2:7: Unexpected token\n  2 | const = 2;\n    |       ^",
        );
        check_file(
            "export const a = () => 1;\nimport { page } from \"bine\";\npage;",
            "2:22: a file of the browser imports only others whose names end with `.browser.ts`, \"bine:services\" and \"bine:browser\": pass it what it needs, and call services",
        );
        check_file(
            "import { b } from \"./b.browser.ts\";\nexport const a = () => b;",
            "1:19: cannot read `shop/b.browser.ts`: not there",
        );
        check_file(
            "export const A = 1;",
            "1:1: the file exports no function: `export const add = (event: MouseEvent) => { .. }`",
        );
        check_file(
            "export const a = () => 1;\nexport default a;",
            "2:1: the program uses functions by their names: `export const add = ..`, and no default export",
        );
        check_file(
            "export const $a = () => 1;",
            "1:14: `$a` is not a valid Rust name: export the function by another name",
        );
        check_file(
            "const a = () => 1; export { a as crate };",
            "1:29: `crate` is not a valid Rust name: export the function by another name",
        );
    }

    #[test]
    fn reports_mistakes_in_imported_files() {
        check(
            CALL,
            &[
                (
                    "shop/cart.browser.ts",
                    "import { b } from \"./b.browser.ts\";\nexport const a = () => b;",
                ),
                (
                    "shop/b.browser.ts",
                    "import { a } from \"./cart.browser.ts\";\nexport const b = a;",
                ),
            ],
            "\"shop/cart.browser.ts\": shop/b.browser.ts:1:19: files `.browser.ts` import each other in a circle: move what both use into a third one",
        );
    }
}
