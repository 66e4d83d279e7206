//! The functions that a file of the browser exports: a program in Rust uses them as handlers.

use std::collections::{HashMap, HashSet};

use oxc_ast::ast::{Declaration, Expression, ModuleExportName, Program, Statement};
use oxc_semantic::Scoping;
use oxc_syntax::symbol::SymbolId;

use super::declarations::{ModuleItem, declarations};
use super::references::References;
use crate::scan::{Imports, export_name};
use crate::source::{Position, Source};

/// A function that a file of the browser exports under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserFunction {
    /// The exported name.
    pub name: String,
    /// The name in the file.
    pub local: String,
    /// Whether it, or a function of the file that it uses, decides about an event while the event is
    /// dispatched, as `preventDefault` does.
    pub acts_at_once: bool,
    /// The place of the export.
    pub position: Position,
}

/// The exported functions of a file, in the order of the source.
pub(crate) fn functions(
    source: &Source<'_>,
    program: &Program<'_>,
    imports: &Imports,
    scoping: &Scoping,
) -> Vec<BrowserFunction> {
    let declared = declarations(program, imports);
    let acting = acting(&declared, scoping);
    let mut found = Vec::new();
    let mut add = |name: String, local: &str, symbol: Option<SymbolId>, start: u32| {
        let Some(symbol) = symbol.filter(|symbol| is_function(declared.get(symbol))) else {
            return;
        };
        let acts_at_once = acting.contains(&symbol);
        let position = source.place(start);
        found.push(BrowserFunction { name, local: local.to_owned(), acts_at_once, position });
    };
    for statement in &program.body {
        match statement {
            Statement::ExportDeclaration(export) => {
                for name in names(&export.declaration) {
                    add(name.0.to_owned(), name.0, name.1, name.2);
                }
            }
            Statement::ExportNamedDeclaration(export) if !export.export_kind.is_type() => {
                for one in export.specifiers.iter().filter(|one| !one.export_kind.is_type()) {
                    let ModuleExportName::IdentifierReference(local) = &one.local else { continue };
                    let reference = local.reference_id.get();
                    let symbol = reference.and_then(|own| scoping.get_reference(own).symbol_id());
                    add(export_name(&one.exported), &local.name, symbol, one.span.start);
                }
            }
            _ => {}
        }
    }
    found
}

/// The names of an exported declaration, with their places.
fn names<'d>(declaration: &'d Declaration<'_>) -> Vec<(&'d str, Option<SymbolId>, u32)> {
    let names = match declaration {
        Declaration::FunctionDeclaration(function) => function.id.iter().collect(),
        Declaration::VariableDeclaration(variables) => {
            let variables = variables.declarations.iter();
            variables.flat_map(|one| one.id.get_binding_identifiers()).collect()
        }
        _ => Vec::new(),
    };
    names.into_iter().map(|id| (id.name.as_str(), id.symbol_id.get(), id.span.start)).collect()
}

fn is_function(item: Option<&ModuleItem<'_, '_>>) -> bool {
    match item {
        Some(ModuleItem::Function(function)) => !function.generator,
        Some(ModuleItem::Constant(constant)) => {
            match constant.init.as_ref().map(Expression::get_inner_expression) {
                Some(Expression::ArrowFunctionExpression(_)) => true,
                Some(Expression::FunctionExpression(function)) => !function.generator,
                _ => false,
            }
        }
        _ => false,
    }
}

/// The declarations that decide about an event while it is dispatched, and those that use them.
fn acting(
    declared: &HashMap<SymbolId, ModuleItem<'_, '_>>,
    scoping: &Scoping,
) -> HashSet<SymbolId> {
    let mut users: HashMap<SymbolId, Vec<SymbolId>> = HashMap::new();
    let mut left = Vec::new();
    for (symbol, item) in declared {
        let found = match item {
            ModuleItem::Function(function) => References::of_function(scoping, function),
            ModuleItem::Constant(constant) => match &constant.init {
                Some(value) => References::of_constant(scoping, value),
                None => continue,
            },
            _ => continue,
        };
        if found.acts_at_once {
            left.push(*symbol);
        }
        for used in found.uses.iter().filter_map(|one| one.symbol) {
            users.entry(used).or_default().push(*symbol);
        }
    }
    let mut acting = HashSet::new();
    while let Some(symbol) = left.pop() {
        if acting.insert(symbol) {
            left.extend(users.remove(&symbol).unwrap_or_default());
        }
    }
    acting
}

#[cfg(test)]
mod tests {
    use crate::compile::compile;

    /// Checks the functions of a file, each as `local as name`, with `now` if it acts at once.
    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let module = compile("a.browser.ts", source).expect("a valid module");
        let shown = module.functions.iter().map(|one| {
            let now = if one.acts_at_once { " now" } else { "" };
            format!(
                "{}:{} {} as {}{now}",
                one.position.line, one.position.column, one.local, one.name
            )
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected, "{source}");
    }

    #[test]
    fn finds_exported_functions() {
        check(
            "export const LIMIT = 60;\nexport const add = (event: Event, data: { id: string }) => {};\nexport async function close() {}\n",
            &["2:14 add as add", "3:23 close as close"],
        );
        check(
            "const a = async () => {}, b = 1;\nfunction c() {}\nexport { a, b, c as d, type E };\ntype E = 1;\n",
            &["3:10 a as a", "3:16 c as d"],
        );
        check(
            "export function* steps() {} export class A {} export let f = () => {}; export type G = () => void; export * from \"./b.browser.ts\"; export default () => {};\n",
            &[],
        );
        check(
            "export const [a] = [() => {}], f = (function () {} as Function);\n",
            &["1:32 f as f"],
        );
    }

    #[test]
    fn marks_functions_that_decide_about_the_event() {
        check(
            "const stop = (event: Event) => event.preventDefault();\n\
             export const a = (event: Event) => { again(event); };\n\
             function again(event: Event) { stop(event); if (event.bubbles) again(event); }\n\
             export const b = (event: DragEvent) => event.dataTransfer?.files;\n\
             export const c = (event: Event) => console.log(event);\n",
            &["2:14 a as a now", "4:14 b as b now", "5:14 c as c"],
        );
    }
}
