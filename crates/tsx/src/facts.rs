//! The facts that the host needs about a module before it runs: exports, services with the shapes
//! of their arguments, tables, imports, regions, and module variables that change.

use std::collections::{BTreeMap, HashSet};

use oxc_ast::ast::{
    Argument, ArrowFunctionExpression, AssignmentExpression, AssignmentTarget, BindingIdentifier,
    BindingPattern, CallExpression, Declaration, ExportDefaultDeclarationKind, Expression,
    FormalParameters, Function, IdentifierReference, ImportDeclarationSpecifier, ImportExpression,
    Program, SimpleAssignmentTarget, Statement, StringLiteral, UnaryExpression, UpdateExpression,
    VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Scoping;
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::UnaryOperator;
use oxc_syntax::scope::ScopeFlags;
use oxc_syntax::symbol::SymbolId;

use crate::diagnostic::Fault;
use crate::scan::{BINE, BROWSER, Imports, SERVICES, declared_name, export_name};
use crate::service_calls::{self, ServiceCall};
use crate::shape::{Shape, Types};
use crate::source::{Position, Source};

/// Facts about a module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The exports of the module.
    pub exports: Vec<Export>,
    /// The services that it exports.
    pub services: Vec<Service>,
    /// The tables that it declares, exported or not.
    pub tables: Vec<Table>,
    /// The events that it exports.
    pub events: Vec<NamedExport>,
    /// The channels, and patterns of channels, that it exports.
    pub channels: Vec<NamedExport>,
    /// The modules that it imports, without types.
    pub imports: Vec<Import>,
    /// Its calls of services in Rust, in the order of the source.
    pub service_calls: Vec<ServiceCall>,
    /// The regions in its markup, in the order of the source.
    pub regions: Vec<Region>,
    /// The module variables that functions change. They are legal only where one run-time serves
    /// the application.
    pub changed_variables: Vec<ChangedVariable>,
}

/// A value that a module exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The exported name; `default` for the default export.
    pub name: String,
    /// The kind, as far as the source shows it.
    pub kind: ExportKind,
    /// The position of the export.
    pub position: Position,
}

/// The kind of an exported value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// The result of `page(..)`.
    Page,
    /// The result of `service(..)`.
    Service,
    /// The result of `table(..)`.
    Table,
    /// Any other value.
    Value,
    /// All exports of another module: `export * from ..`.
    All,
}

/// A service: a function that a browser or a server calls by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// The name of the exported constant.
    pub name: String,
    /// The shape of its one argument, an object.
    pub argument: Shape,
    /// The position of the name.
    pub position: Position,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name in the store.
    pub name: String,
    /// The variable that holds it.
    pub variable: String,
    /// The position of the variable.
    pub position: Position,
}

/// An event or a channel that a module exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedExport {
    /// The exported name.
    pub export: String,
    /// Its name in the application.
    pub name: String,
}

/// An import of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The specifier as written.
    pub specifier: String,
    /// The kind of the specifier.
    pub kind: ImportKind,
    /// The imported names: `default`, `*` for all, or names of exports. Empty for `import ".."` and
    /// `import(..)`.
    pub names: Vec<String>,
    /// The position of the specifier.
    pub position: Position,
}

/// The kinds of specifiers that a module may import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// A file, relative to this one: `./..` and `../..`.
    Relative,
    /// `bine`: the words of the server.
    Bine,
    /// `bine:services`: the services of Rust.
    Services,
    /// `bine:start`: the words of the start script.
    Start,
    /// `bine:browser`: the words of the script of pages, for files of the browser.
    Browser,
}

/// A `<Live>` region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// A name of the region that is unique in the module and changes with its source.
    pub hash: String,
    /// The hash of its source alone.
    pub(crate) source_hash: String,
    /// The position of the tag.
    pub position: Position,
}

/// A module variable that a function changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedVariable {
    /// The name.
    pub name: String,
    /// The position of its declaration.
    pub declared: Position,
    /// The position of the first change.
    pub changed: Position,
}

/// Collects the facts of a program, except for its regions.
pub(crate) fn collect(
    source: &Source<'_>,
    program: &Program<'_>,
    imports: &Imports,
    scoping: &Scoping,
    faults: &mut Vec<Fault>,
) -> Facts {
    let types = Types::of(program, imports);
    let mut collector = Collector {
        source,
        imports,
        types: &types,
        scoping,
        faults,
        facts: Facts::default(),
        functions: 0,
        changed: BTreeMap::new(),
        collections: HashSet::new(),
        named_services: Vec::new(),
    };
    collector.statements(program);
    collector.visit_program(program);
    let service_calls = service_calls::collect(source, program, scoping);
    Facts { service_calls, ..collector.finish() }
}

struct Collector<'c, 'p, 'a> {
    source: &'c Source<'c>,
    imports: &'c Imports,
    types: &'c Types<'p, 'a>,
    scoping: &'c Scoping,
    faults: &'c mut Vec<Fault>,
    facts: Facts,
    /// The number of enclosing functions.
    functions: usize,
    /// The changed variables, with the offset of the first change.
    changed: BTreeMap<u32, (SymbolId, u32)>,
    /// The starts of the names of module variables that hold a new array, object or instance.
    collections: HashSet<u32>,
    /// The starts of the calls of `service` that are exported by name.
    named_services: Vec<u32>,
}

impl<'a> Collector<'_, '_, 'a> {
    fn statements(&mut self, program: &Program<'a>) {
        let mut kinds = BTreeMap::new();
        let exported = exported_names(program);
        for statement in &program.body {
            let declaration = match statement {
                Statement::VariableDeclaration(declaration) => Some((&**declaration, false)),
                Statement::ExportDeclaration(export) => match &export.declaration {
                    Declaration::VariableDeclaration(declaration) => Some((&**declaration, true)),
                    _ => None,
                },
                _ => None,
            };
            let Some((declaration, is_exported)) = declaration else { continue };
            for declarator in &declaration.declarations {
                if let BindingPattern::BindingIdentifier(name) = &declarator.id {
                    let value = declarator.init.as_ref().map(Expression::get_inner_expression);
                    if value.is_some_and(is_collection) {
                        self.collections.insert(name.span.start);
                    }
                    let exported = match exported.get(name.name.as_str()) {
                        None if is_exported => Some(name.name.to_string()),
                        other => other.cloned(),
                    };
                    let kind = self.declarator(name, declarator, exported);
                    kinds.insert(name.name.to_string(), kind);
                }
            }
        }
        for statement in &program.body {
            self.module_statement(statement, &kinds);
        }
    }

    /// The kind of a variable at the top level.
    fn declarator(
        &mut self,
        variable: &BindingIdentifier<'a>,
        declarator: &VariableDeclarator<'a>,
        exported: Option<String>,
    ) -> ExportKind {
        let Some(Expression::CallExpression(call)) =
            declarator.init.as_ref().map(Expression::get_inner_expression)
        else {
            return ExportKind::Value;
        };
        let position = self.source.place(variable.span.start);
        match (self.imports.called_word(&call.callee), exported) {
            (Some("service"), Some(name)) => {
                self.named_services.push(call.span.start);
                let argument = match self.argument(call) {
                    Ok(argument) => argument,
                    Err(fault) => {
                        self.faults.push(fault);
                        return ExportKind::Service;
                    }
                };
                self.facts.services.push(Service { name, argument, position });
                ExportKind::Service
            }
            (Some("service"), None) => ExportKind::Service,
            (Some("page"), _) => ExportKind::Page,
            (Some("table"), _) => {
                match call.arguments.first() {
                    Some(Argument::StringLiteral(table)) => self.facts.tables.push(Table {
                        name: table.value.to_string(),
                        variable: variable.name.to_string(),
                        position,
                    }),
                    _ => {
                        let message =
                            "the name of a table is a string: `table(\"messages\", { .. })`";
                        self.faults.push(Fault::new(call.span, message));
                    }
                }
                ExportKind::Table
            }
            (Some(word @ ("event" | "channel")), Some(export)) => {
                let value = declarator.init.as_ref().map(Expression::get_inner_expression);
                if let Some(name) = value.and_then(declared_name) {
                    let Facts { events, channels, .. } = &mut self.facts;
                    let list = if word == "event" { events } else { channels };
                    list.push(NamedExport { export, name });
                }
                ExportKind::Value
            }
            _ => ExportKind::Value,
        }
    }

    /// The shape of the argument of the function in `service(..)`.
    fn argument(&self, call: &CallExpression<'a>) -> Result<Shape, Fault> {
        let parameters: &FormalParameters<'a> = call
            .arguments
            .iter()
            .find_map(|argument| match argument {
                Argument::ArrowFunctionExpression(arrow) => Some(&*arrow.params),
                Argument::FunctionExpression(function) => Some(&*function.params),
                _ => None,
            })
            .ok_or_else(|| {
                let message = "`service` needs its function in the call, so that the server can read the types \
                               of its arguments: `service((ctx, { body }: { body: string }) => ..)`";
                Fault::new(call.span, message)
            })?;
        let Some(parameter) = parameters.items.get(1) else { return Ok(Shape::Object(Vec::new())) };
        if let Some(further) = parameters.items.get(2) {
            let message =
                "a service takes the context and one object: put this argument into the object";
            return Err(Fault::new(further.span, message));
        }
        let Some(annotation) = &parameter.type_annotation else {
            let message = "the argument of a service needs a type, by which the server checks it: \
                           `{ body }: { body: string }`";
            return Err(Fault::new(parameter.span, message));
        };
        match self.types.shape(&annotation.type_annotation)? {
            object @ Shape::Object(_) => Ok(object),
            _ => {
                let message =
                    "the argument of a service is an object: `{ body }: { body: string }`";
                Err(Fault::new(annotation.span, message))
            }
        }
    }

    fn module_statement(
        &mut self,
        statement: &Statement<'a>,
        kinds: &BTreeMap<String, ExportKind>,
    ) {
        match statement {
            Statement::ImportDeclaration(import) if !import.import_kind.is_type() => {
                let specifiers = import.specifiers.as_ref().map_or(&[][..], |list| list.as_slice());
                let name = |specifier: &ImportDeclarationSpecifier<'a>| match specifier {
                    ImportDeclarationSpecifier::ImportSpecifier(named) => {
                        (!named.import_kind.is_type()).then(|| export_name(&named.imported))
                    }
                    ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => Some("default".into()),
                    ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => Some("*".into()),
                };
                self.import(&import.source, specifiers.iter().filter_map(name).collect());
            }
            Statement::ExportFromDeclaration(export) if !export.export_kind.is_type() => {
                let values = export.specifiers.iter().filter(|one| !one.export_kind.is_type());
                let names = values.clone().map(|one| export_name(&one.local)).collect();
                self.import(&export.source, names);
                for one in values {
                    self.export(export_name(&one.exported), ExportKind::Value, one.span);
                }
            }
            Statement::ExportAllDeclaration(export) if !export.export_kind.is_type() => {
                self.import(&export.source, vec!["*".to_owned()]);
                let (name, kind) = match &export.exported {
                    Some(name) => (export_name(name), ExportKind::Value),
                    None => ("*".to_owned(), ExportKind::All),
                };
                self.export(name, kind, export.span);
            }
            Statement::ExportNamedDeclaration(export) if !export.export_kind.is_type() => {
                for one in export.specifiers.iter().filter(|one| !one.export_kind.is_type()) {
                    let kind = kinds.get(&export_name(&one.local)).copied();
                    let kind = kind.unwrap_or(ExportKind::Value);
                    self.export(export_name(&one.exported), kind, one.span);
                }
            }
            Statement::ExportDefaultDeclaration(export) => {
                let kind = match &export.declaration {
                    ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => return,
                    ExportDefaultDeclarationKind::CallExpression(call) => {
                        match self.imports.called_word(&call.callee) {
                            Some("page") => ExportKind::Page,
                            Some("table") => ExportKind::Table,
                            _ => ExportKind::Value,
                        }
                    }
                    ExportDefaultDeclarationKind::Identifier(name) => {
                        kinds.get(name.name.as_str()).copied().unwrap_or(ExportKind::Value)
                    }
                    _ => ExportKind::Value,
                };
                self.export("default".to_owned(), kind, export.span);
            }
            Statement::ExportDeclaration(export) => self.declaration(&export.declaration, kinds),
            _ => {}
        }
    }

    fn declaration(&mut self, declaration: &Declaration<'a>, kinds: &BTreeMap<String, ExportKind>) {
        match declaration {
            Declaration::VariableDeclaration(variables) if !variables.declare => {
                for declarator in &variables.declarations {
                    for name in declarator.id.get_binding_identifiers() {
                        let kind = kinds.get(name.name.as_str()).copied();
                        let kind = kind.unwrap_or(ExportKind::Value);
                        self.export(name.name.to_string(), kind, name.span);
                    }
                }
            }
            Declaration::FunctionDeclaration(function) if function.body.is_some() => {
                if let Some(name) = &function.id {
                    self.export(name.name.to_string(), ExportKind::Value, name.span);
                }
            }
            Declaration::ClassDeclaration(class) if !class.declare => {
                if let Some(name) = &class.id {
                    self.export(name.name.to_string(), ExportKind::Value, name.span);
                }
            }
            _ => {}
        }
    }

    fn export(&mut self, name: String, kind: ExportKind, span: Span) {
        let position = self.source.place(span.start);
        self.facts.exports.push(Export { name, kind, position });
    }

    fn import(&mut self, specifier: &StringLiteral<'a>, names: Vec<String>) {
        let text = specifier.value.as_str();
        let kind = match text {
            BINE => ImportKind::Bine,
            SERVICES => ImportKind::Services,
            "bine:start" => ImportKind::Start,
            BROWSER => ImportKind::Browser,
            _ if text.starts_with("./") || text.starts_with("../") => ImportKind::Relative,
            _ => {
                let message = format!(
                    "`{text}` cannot be imported: only files, `\"./name.ts\"`, and `\"bine\"` and \
                     `\"bine:services\"`; copy a library that is one ES module into the folder"
                );
                return self.faults.push(Fault::new(specifier.span, message));
            }
        };
        let position = self.source.place(specifier.span.start);
        self.facts.imports.push(Import { specifier: text.to_owned(), kind, names, position });
    }

    /// Records a change of a module variable within a function.
    fn change(&mut self, name: &IdentifierReference<'a>) {
        let Some(reference) = name.reference_id.get() else { return };
        let Some(symbol) = self.scoping.get_reference(reference).symbol_id() else { return };
        let is_of_module = self.scoping.symbol_scope_id(symbol) == self.scoping.root_scope_id();
        let is_import = self.scoping.symbol_flags(symbol).is_import();
        if self.functions == 0 || !is_of_module || is_import {
            return;
        }
        let declared = self.scoping.symbol_span(symbol).start;
        self.changed.entry(declared).or_insert((symbol, name.span.start));
    }

    /// Records a change of a property of a module variable.
    fn change_object(&mut self, object: &Expression<'a>) {
        if let Some(name) = root_of(object) {
            self.change(name);
        }
    }

    fn change_target(&mut self, target: &AssignmentTarget<'a>) {
        let mut finder = TargetFinder { found: Vec::new() };
        finder.target(target);
        for name in finder.found {
            self.change(name);
        }
    }

    fn finish(mut self) -> Facts {
        let changed = self.changed.iter().map(|(declared, (symbol, at))| ChangedVariable {
            name: self.scoping.symbol_name(*symbol).to_owned(),
            declared: self.source.place(*declared),
            changed: self.source.place(*at),
        });
        self.facts.changed_variables = changed.collect();
        self.facts
    }
}

impl<'a> Visit<'a> for Collector<'_, '_, 'a> {
    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.functions += 1;
        walk::walk_function(self, it, flags);
        self.functions -= 1;
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.functions += 1;
        walk::walk_arrow_function_expression(self, it);
        self.functions -= 1;
    }

    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        self.change_target(&it.left);
        walk::walk_assignment_expression(self, it);
    }

    fn visit_update_expression(&mut self, it: &UpdateExpression<'a>) {
        match &it.argument {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(name) => self.change(name),
            target => {
                if let Some(member) = target.as_member_expression() {
                    self.change_object(member.object());
                }
            }
        }
        walk::walk_update_expression(self, it);
    }

    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        if it.operator == UnaryOperator::Delete
            && let Some(member) = it.argument.get_inner_expression().as_member_expression()
        {
            self.change_object(member.object());
        }
        walk::walk_unary_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if let Expression::StaticMemberExpression(member) = &it.callee
            && CHANGING.contains(&member.property.name.as_str())
            && let Some(name) = root_of(&member.object)
            && self.holds_collection(name)
        {
            self.change(name);
        }
        let is_service = self.imports.called_word(&it.callee) == Some("service");
        if is_service && !self.named_services.contains(&it.span.start) {
            let message =
                "a service has the name of an exported constant: `export const post = service(..)`";
            self.faults.push(Fault::new(it.callee.span(), message));
        }
        walk::walk_call_expression(self, it);
    }

    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        match &it.source {
            Expression::StringLiteral(specifier) => self.import(specifier, Vec::new()),
            other => {
                let message = "the specifier of `import(..)` is a string, so that the server knows all modules";
                self.faults.push(Fault::new(other.span(), message));
            }
        }
        walk::walk_import_expression(self, it);
    }
}

/// The methods that change an array, a `Map` or a `Set`.
const CHANGING: [&str; 14] = [
    "add",
    "clear",
    "copyWithin",
    "delete",
    "fill",
    "pop",
    "push",
    "reverse",
    "set",
    "shift",
    "sort",
    "splice",
    "unshift",
    "append",
];

impl<'a> Collector<'_, '_, 'a> {
    /// Whether a variable of the module holds a collection that a method may change, and no table.
    fn holds_collection(&self, name: &IdentifierReference<'a>) -> bool {
        let reference = name.reference_id.get();
        let symbol =
            reference.and_then(|reference| self.scoping.get_reference(reference).symbol_id());
        let Some(symbol) = symbol else { return false };
        self.collections.contains(&self.scoping.symbol_span(symbol).start)
    }
}

/// The exported names of variables in `export { .. }`, by the names of the variables.
pub(crate) fn exported_names(program: &Program<'_>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for statement in &program.body {
        let Statement::ExportNamedDeclaration(export) = statement else { continue };
        for one in &export.specifiers {
            names.insert(export_name(&one.local), export_name(&one.exported));
        }
    }
    names
}

fn is_collection(value: &Expression<'_>) -> bool {
    matches!(
        value,
        Expression::ArrayExpression(_)
            | Expression::ObjectExpression(_)
            | Expression::NewExpression(_)
    )
}

/// The variable at the start of a chain of properties.
fn root_of<'r, 'a>(object: &'r Expression<'a>) -> Option<&'r IdentifierReference<'a>> {
    let mut object = object.get_inner_expression();
    loop {
        match object {
            Expression::Identifier(name) => return Some(name),
            other => object = other.as_member_expression()?.object().get_inner_expression(),
        }
    }
}

/// Finds the variables that an assignment changes.
struct TargetFinder<'f, 'a> {
    found: Vec<&'f IdentifierReference<'a>>,
}

impl<'f, 'a> TargetFinder<'f, 'a> {
    fn target(&mut self, target: &'f AssignmentTarget<'a>) {
        use oxc_ast::ast::AssignmentTargetProperty as P;
        match target {
            AssignmentTarget::AssignmentTargetIdentifier(name) => self.found.push(name),
            AssignmentTarget::ArrayAssignmentTarget(array) => {
                for element in array.elements.iter().flatten() {
                    self.with_default(element);
                }
                if let Some(rest) = &array.rest {
                    self.target(&rest.target);
                }
            }
            AssignmentTarget::ObjectAssignmentTarget(object) => {
                for property in &object.properties {
                    match property {
                        P::AssignmentTargetPropertyIdentifier(one) => self.found.push(&one.binding),
                        P::AssignmentTargetPropertyProperty(one) => self.with_default(&one.binding),
                    }
                }
                if let Some(rest) = &object.rest {
                    self.target(&rest.target);
                }
            }
            other => {
                let member = other.as_simple_assignment_target();
                let member = member.and_then(SimpleAssignmentTarget::as_member_expression);
                self.found.extend(member.and_then(|member| root_of(member.object())));
            }
        }
    }

    fn with_default(&mut self, target: &'f oxc_ast::ast::AssignmentTargetMaybeDefault<'a>) {
        use oxc_ast::ast::AssignmentTargetMaybeDefault as D;
        match target {
            D::AssignmentTargetWithDefault(with) => self.target(&with.binding),
            other => {
                if let Some(target) = other.as_assignment_target() {
                    self.target(target);
                }
            }
        }
    }
}
