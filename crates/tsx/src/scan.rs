//! Small questions about a program: its imports, whether code waits, and the hash of a text.

use std::collections::HashMap;

use oxc_ast::ast::{
    Argument, ArrowFunctionExpression, AwaitExpression, Expression, Function,
    ImportDeclarationSpecifier, JSXChild, ModuleExportName, Program, Statement,
};
use oxc_ast_visit::Visit;
use oxc_syntax::scope::ScopeFlags;

/// The module of the server's words.
pub(crate) const BINE: &str = "bine";

/// The module of the services in Rust.
pub(crate) const SERVICES: &str = "bine:services";

/// The module of the words of the script of pages, for files of the browser.
pub(crate) const BROWSER: &str = "bine:browser";

/// The names that a program imports from `bine`.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    /// The exported names by the local names.
    of_bine: HashMap<String, String>,
}

impl Imports {
    pub(crate) fn of(program: &Program<'_>) -> Self {
        let mut imports = Self::default();
        for statement in &program.body {
            let Statement::ImportDeclaration(import) = statement else { continue };
            if import.source.value != BINE {
                continue;
            }
            for specifier in import.specifiers.as_ref().map_or(&[][..], |list| list.as_slice()) {
                if let ImportDeclarationSpecifier::ImportSpecifier(named) = specifier {
                    let imported = export_name(&named.imported);
                    imports.of_bine.insert(named.local.name.to_string(), imported);
                }
            }
        }
        imports
    }

    /// The name that `bine` exports, for a local name.
    pub(crate) fn word(&self, local: &str) -> Option<&str> {
        self.of_bine.get(local).map(String::as_str)
    }

    /// Whether a local name is `Live` of `bine`.
    pub(crate) fn is_live(&self, local: &str) -> bool {
        self.word(local) == Some("Live")
    }

    /// The word of `bine` that an expression calls.
    pub(crate) fn called_word(&self, callee: &Expression<'_>) -> Option<&str> {
        match callee {
            Expression::Identifier(name) => self.word(&name.name),
            _ => None,
        }
    }
}

/// The name of an event or a channel in its declaration, if it is a string.
pub(crate) fn declared_name(call: &Expression<'_>) -> Option<String> {
    let Expression::CallExpression(call) = call else { return None };
    match call.arguments.first() {
        Some(Argument::StringLiteral(name)) => Some(name.value.to_string()),
        _ => None,
    }
}

/// The name in an import or an export.
pub(crate) fn export_name(name: &ModuleExportName<'_>) -> String {
    match name {
        ModuleExportName::IdentifierName(name) => name.name.to_string(),
        ModuleExportName::IdentifierReference(name) => name.name.to_string(),
        ModuleExportName::StringLiteral(name) => name.value.to_string(),
    }
}

/// Whether the code in children contains an `await` outside of functions.
pub(crate) fn awaits(children: &[JSXChild<'_>]) -> bool {
    let mut finder = AwaitFinder { is_found: false };
    for child in children {
        finder.visit_jsx_child(child);
    }
    finder.is_found
}

struct AwaitFinder {
    is_found: bool,
}

impl<'a> Visit<'a> for AwaitFinder {
    fn visit_await_expression(&mut self, _: &AwaitExpression<'a>) {
        self.is_found = true;
    }

    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}
}

/// The hash of a text and a number, as 16 hexadecimal digits: FNV-1a with 64 bits. It names a
/// region of a module, and the author of the module chooses the text, so no attacker matters.
pub(crate) fn hash(text: &str, number: u64) -> String {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let bytes = text.bytes().chain(number.to_le_bytes());
    let hash = bytes.fold(START, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}
