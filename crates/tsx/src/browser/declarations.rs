//! The declarations at the top of a module, as the browser can have them.

use std::collections::{BTreeMap, HashMap};

use oxc_ast::ast::{
    BindingPattern, Declaration, Expression, Function, ImportDeclarationSpecifier, Program,
    Statement, VariableDeclaration, VariableDeclarator,
};
use oxc_syntax::symbol::SymbolId;

use crate::facts::exported_names;
use crate::scan::{Imports, declared_name, export_name};

/// A declaration of the module.
pub(super) enum ModuleItem<'p, 'a> {
    Import {
        specifier: &'p str,
        name: String,
    },
    Service(String),
    /// An event, by its name in the application.
    Event(String),
    /// A channel, or a pattern of channels, by its name in the application.
    Channel(String),
    Function(&'p Function<'a>),
    Constant(&'p VariableDeclarator<'a>),
    /// A value that only the server has, in words.
    Server(&'static str),
    /// The result of `browser(..)`.
    Browser,
    /// Anything else, in words, with what to do.
    Other(&'static str),
}

/// The declarations at the top of a module.
pub(super) fn declarations<'p, 'a>(
    program: &'p Program<'a>,
    imports: &Imports,
) -> HashMap<SymbolId, ModuleItem<'p, 'a>> {
    let mut found =
        Declarations { imports, exported: exported_names(program), all: HashMap::new() };
    for statement in &program.body {
        match statement {
            Statement::ImportDeclaration(import) => {
                for specifier in import.specifiers.iter().flatten() {
                    let name = match specifier {
                        ImportDeclarationSpecifier::ImportSpecifier(named) => {
                            export_name(&named.imported)
                        }
                        ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => "default".into(),
                        ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => "*".into(),
                    };
                    let specifier_text = import.source.value.as_str();
                    let symbol = specifier.local().symbol_id.get();
                    found.add(symbol, ModuleItem::Import { specifier: specifier_text, name });
                }
            }
            Statement::VariableDeclaration(variables) => found.variables(variables, false),
            Statement::FunctionDeclaration(function) => found.function(function),
            Statement::ClassDeclaration(class) => {
                found.class(class.id.as_ref().and_then(|id| id.symbol_id.get()));
            }
            Statement::ExportDeclaration(export) => match &export.declaration {
                Declaration::VariableDeclaration(variables) => found.variables(variables, true),
                Declaration::FunctionDeclaration(function) => found.function(function),
                Declaration::ClassDeclaration(class) => {
                    found.class(class.id.as_ref().and_then(|id| id.symbol_id.get()));
                }
                _ => {}
            },
            _ => {}
        }
    }
    found.all
}

struct Declarations<'d, 'p, 'a> {
    imports: &'d Imports,
    exported: BTreeMap<String, String>,
    all: HashMap<SymbolId, ModuleItem<'p, 'a>>,
}

impl<'p, 'a> Declarations<'_, 'p, 'a> {
    fn add(&mut self, symbol: Option<SymbolId>, declared: ModuleItem<'p, 'a>) {
        self.all.extend(symbol.map(|symbol| (symbol, declared)));
    }

    fn function(&mut self, function: &'p Function<'a>) {
        let symbol = function.id.as_ref().and_then(|id| id.symbol_id.get());
        self.add(symbol, ModuleItem::Function(function));
    }

    fn class(&mut self, symbol: Option<SymbolId>) {
        self.add(symbol, ModuleItem::Other("a class: move it to a file `.browser.ts`"));
    }

    fn variables(&mut self, variables: &'p VariableDeclaration<'a>, is_exported: bool) {
        for declarator in &variables.declarations {
            let BindingPattern::BindingIdentifier(name) = &declarator.id else {
                for name in declarator.id.get_binding_identifiers() {
                    let what = "a part of another value: give it a constant of its own";
                    self.add(name.symbol_id.get(), ModuleItem::Other(what));
                }
                continue;
            };
            let declared = self.variable(&name.name, declarator, variables, is_exported);
            self.add(name.symbol_id.get(), declared);
        }
    }

    fn variable(
        &self,
        name: &str,
        declarator: &'p VariableDeclarator<'a>,
        variables: &VariableDeclaration<'a>,
        is_exported: bool,
    ) -> ModuleItem<'p, 'a> {
        let value = declarator.init.as_ref().map(Expression::get_inner_expression);
        let word = match value {
            Some(Expression::CallExpression(call)) => self.imports.called_word(&call.callee),
            _ => None,
        };
        let exported = self.exported.get(name).cloned();
        let exported = exported.or_else(|| is_exported.then(|| name.to_owned()));
        match (word, exported) {
            (Some("service"), Some(service)) => ModuleItem::Service(service),
            (Some("service"), None) => ModuleItem::Other("a service without a name: export it"),
            (Some("table"), _) => ModuleItem::Server("a table"),
            (Some(word @ ("event" | "channel")), _) => match value.and_then(declared_name) {
                Some(name) if word == "event" => ModuleItem::Event(name),
                Some(name) => ModuleItem::Channel(name),
                None => ModuleItem::Other("declared with a computed name: write it as a string"),
            },
            (Some("browser"), _) => ModuleItem::Browser,
            (Some(_), _) => ModuleItem::Server("a value"),
            (None, _) if variables.kind.is_const() => ModuleItem::Constant(declarator),
            (None, _) => ModuleItem::Other(
                "a variable of the server: make it a `const`, or pass its value by a `const` of the page",
            ),
        }
    }
}
