//! The types of the module `bine:services` for editors: a declaration of each service in Rust.
//!
//! A site has them for its applications in TSX, and a program for its files of the browser.

use std::fmt::Write as _;
use std::fs;
#[cfg(feature = "script")]
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::import_names::{named, unnamed};
use super::in_process::{NamedService, ServiceDirectory};
use super::type_shape::{ChoiceVariant, RecordField, TypeShape};

/// The folder of the types in a site, which `tsconfig.json` names.
const FOLDER: &str = ".bine/types";
/// The file of these types in the folder.
#[cfg(feature = "script")]
const FILE: &str = "services.d.ts";
/// The path in `tsconfig.json` by which editors find the types.
#[cfg(feature = "script")]
const MODULE_PATH: &str = "\"bine:services\": [\"./.bine/types/services.d.ts\"]";
/// The files of the types for files of the browser of a program in Rust: services, and `bine:browser`.
#[cfg(feature = "browser")]
const BROWSER_SERVICES: &str = "browser-services.d.ts";
#[cfg(feature = "browser")]
const BROWSER_WORDS: &str = "browser.d.ts";
/// Names that no declaration of TypeScript may have.
const RESERVED: [&str; 46] = [
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "while",
    "with",
];

#[cfg(feature = "script")]
const HEAD: &str = r#"// The services of the program in Rust: the module `bine:services`. The program writes this file with
// its option `--types`, and when it starts in development, so a change in it is lost.

import type { Addressed } from "./markup.d.ts";

/** A whole number of 64 bits. It is a text if it is larger than a number can hold exactly. */
type Integer64 = number | string;

/**
 * The answer of a call: the value itself in a service that is no `async` function, because the call
 * joins its transaction, and a promise of it elsewhere.
 */
type Answer<T, All = T> = [All] extends [void]
  ? Promise<void>
  : T extends null | undefined
  ? T
  : T & Promise<All>;

/** A service without arguments accepts an empty object only. */
type NoArguments = { [name: string]: never };

/** A service in Rust. */
interface RustService<Argument, Result> extends Addressed {
  (...argument: {} extends Argument ? [argument?: Argument] : [argument: Argument]): Answer<Result>;
}
"#;

#[cfg(feature = "browser")]
const BROWSER_HEAD: &str = r#"// The services of the program in Rust, as functions of the browser. The program writes this file with its
// option `--types`, and when it starts in development, so a change in it is lost.

declare module "bine:services" {
  /** A whole number of 64 bits. It is a text if it is larger than a number can hold exactly. */
  type Integer64 = number | string;

  /** A service without arguments accepts an empty object only. */
  type NoArguments = { [name: string]: never };

  /**
   * Calls a service in Rust. If the service fails, or cannot be reached, the promise is rejected: with an
   * error that has `status`, `detail` and `errors` if there is a response.
   */
  type RustService<Argument, Result> = (
    ...argument: {} extends Argument ? [argument?: Argument] : [argument: Argument]
  ) => Promise<Result>;
"#;

/// The text of the declarations.
#[cfg(feature = "script")]
pub(crate) fn declarations(services: &ServiceDirectory) -> String {
    let mut text = HEAD.to_owned();
    for (name, service) in named(services) {
        let (rust, path) = (service.name, service.path);
        // A `String` takes any text.
        let _ = write!(text, "\n/** `{rust}` in Rust, at `{path}`. */\n");
        let kind = format!("RustService<{}, {}>", arguments(service), answer(service));
        let _ = if RESERVED.contains(&name) {
            writeln!(
                text,
                "declare const service_{name}: {kind};\nexport {{ service_{name} as {name} }};"
            )
        } else {
            writeln!(text, "export declare const {name}: {kind};")
        };
    }
    for (name, reason) in unnamed(services) {
        let _ = write!(text, "\n// `{name}` cannot be imported: {reason}.\n");
    }
    // A module without exports would be a script.
    if named(services).next().is_none() {
        text.push_str("\nexport {};\n");
    }
    text
}

/// The text of the declarations for the browser, where each service returns a promise.
#[cfg(feature = "browser")]
fn declarations_for_browsers(services: &ServiceDirectory) -> String {
    let mut text = BROWSER_HEAD.to_owned();
    for (name, service) in named(services) {
        let (rust, path) = (service.name, service.path);
        // A `String` takes any text.
        let _ = write!(text, "\n  /** `{rust}` in Rust, at `{path}`. */\n");
        let kind = format!("RustService<{}, {}>", arguments(service), answer(service));
        let _ = if RESERVED.contains(&name) {
            writeln!(
                text,
                "  const service_{name}: {kind};\n  export {{ service_{name} as {name} }};"
            )
        } else {
            writeln!(text, "  export const {name}: {kind};")
        };
    }
    for (name, reason) in unnamed(services) {
        let _ = write!(text, "\n  // `{name}` cannot be imported: {reason}.\n");
    }
    // Without an export, the module would export its types too.
    text.push_str("\n  export {};\n}\n");
    text
}

/// Writes the declarations for files of the browser into the folder of a package. Returns a message
/// that names the files.
///
/// # Errors
///
/// A file cannot be written.
#[cfg(feature = "browser")]
pub(crate) fn write_for_browsers(
    package: &Path,
    services: &ServiceDirectory,
) -> Result<String, String> {
    let folder = package.join(FOLDER);
    let failed = |path: &Path, error| format!("cannot write {}: {error}", path.display());
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    let mut message = String::new();
    let services = declarations_for_browsers(services);
    for (name, text) in [(BROWSER_SERVICES, &*services), (BROWSER_WORDS, bine_browser::TYPES)] {
        let path = folder.join(name);
        let is_equal = fs::read_to_string(&path).is_ok_and(|old| old == text);
        if !is_equal {
            replace(&path, text).map_err(|error| failed(&path, error))?;
        }
        let done = if is_equal { "up to date:" } else { "wrote" };
        let _ = writeln!(message, "{done} {}", path.display());
    }
    Ok(message)
}

/// Writes the declarations for files of the browser at a start in development, if the package has some.
#[cfg(feature = "browser")]
pub(crate) fn refresh_for_browsers(
    package: &Path,
    services: &ServiceDirectory,
) -> Result<(), String> {
    let has_types = package.join(FOLDER).join(BROWSER_SERVICES).is_file();
    if has_types { write_for_browsers(package, services).map(drop) } else { Ok(()) }
}

/// Writes the declarations into the folder of a site. Returns a message that names the file.
///
/// # Errors
///
/// The file cannot be written.
#[cfg(feature = "script")]
pub(crate) fn write(root: &Path, services: &ServiceDirectory) -> Result<String, String> {
    let path = root.join(FOLDER).join(FILE);
    let failed = |error| format!("cannot write {}: {error}", path.display());
    fs::create_dir_all(root.join(FOLDER)).map_err(failed)?;
    let text = declarations(services);
    // An editor reads the file again after each change.
    if fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(format!("{} is up to date{}\n", path.display(), hint(root)));
    }
    replace(&path, &text).map_err(failed)?;
    Ok(format!("wrote {}{}\n", path.display(), hint(root)))
}

/// Writes the declarations at a start in development, if the site has types for editors.
#[cfg(feature = "script")]
pub(crate) fn refresh(root: &Path, services: &ServiceDirectory) -> Result<(), String> {
    if root.join(FOLDER).is_dir() { write(root, services).map(drop) } else { Ok(()) }
}

/// No reader sees a part of the file.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new: PathBuf = path.with_extension(format!("{}.new", std::process::id()));
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // The error of the write is more useful than that of the removal.
        let _ = fs::remove_file(&new);
    }
    written
}

/// The missing parts that an editor needs to find the types.
#[cfg(feature = "script")]
fn hint(root: &Path) -> String {
    match fs::read_to_string(root.join("tsconfig.json")) {
        Ok(text) if text.contains("\"bine:services\"") => String::new(),
        Ok(_) => format!(
            "\nfor editors, add this to the `paths` in {}: {MODULE_PATH}",
            root.join("tsconfig.json").display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("\nfor editors, run `bine types {}` once", root.display())
        }
        Err(_) => String::new(),
    }
}

fn arguments(service: &NamedService) -> String {
    let shapes = &service.shape().arguments;
    if shapes.is_empty() {
        return "NoArguments".to_owned();
    }
    let fields = service.arguments.iter().zip(shapes).map(|((name, kind), argument)| {
        let name = key(name.strip_prefix("r#").unwrap_or(name));
        let value = whole(&argument.shape, kind, Direction::In);
        if argument.may_be_absent {
            format!("{name}?: {value} | undefined")
        } else {
            format!("{name}: {value}")
        }
    });
    format!("{{ {} }}", fields.collect::<Vec<_>>().join("; "))
}

fn answer(service: &NamedService) -> String {
    match service.answer {
        "" | "()" => "void".to_owned(),
        kind => whole(&service.shape().answer, kind, Direction::Out),
    }
}

/// The type of an argument or an answer. `kind`: the type in Rust, for one that is unknown.
fn whole(shape: &TypeShape, kind: &str, direction: Direction) -> String {
    match shape {
        TypeShape::Unknown => format!("unknown /* {} */", kind.replace("*/", "* /")),
        other => spelled(other, direction),
    }
}

/// Whether a script passes a value, or gets it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

fn spelled(shape: &TypeShape, direction: Direction) -> String {
    let inner = |shape: &TypeShape| spelled(shape, direction);
    match shape {
        TypeShape::Unknown => "unknown".to_owned(),
        TypeShape::Nothing => "null".to_owned(),
        TypeShape::Boolean => "boolean".to_owned(),
        TypeShape::Number => "number".to_owned(),
        TypeShape::LargeInteger => "Integer64".to_owned(),
        TypeShape::Text => "string".to_owned(),
        TypeShape::Optional(some) => match inner(some).as_str() {
            "unknown" => "unknown".to_owned(),
            some => format!("{some} | null"),
        },
        TypeShape::List(item) => match **item {
            TypeShape::Optional(_) | TypeShape::Choice(_) => format!("({})[]", inner(item)),
            _ => format!("{}[]", inner(item)),
        },
        TypeShape::Tuple(items) => {
            format!("[{}]", items.iter().map(inner).collect::<Vec<_>>().join(", "))
        }
        TypeShape::Map(value) => format!("{{ [name: string]: {} }}", inner(value)),
        TypeShape::Record(fields) if fields.is_empty() => "{}".to_owned(),
        TypeShape::Record(fields) => {
            let field = |own: &RecordField| {
                let (name, value) = (key(own.name), inner(&own.shape));
                // An answer has each field, unless serde omits it.
                if own.may_be_absent && direction == Direction::In {
                    format!("{name}?: {value} | undefined")
                } else {
                    format!("{name}: {value}")
                }
            };
            format!("{{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join("; "))
        }
        TypeShape::Choice(variants) if variants.is_empty() => "never".to_owned(),
        TypeShape::Choice(variants) => {
            let variant = |own: &ChoiceVariant| match &own.content {
                None => quoted(own.word),
                Some(content) => format!("{{ {}: {} }}", key(own.word), inner(content)),
            };
            variants.iter().map(variant).collect::<Vec<_>>().join(" | ")
        }
    }
}

/// A name as the key of an object type.
fn key(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain { name.to_owned() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
