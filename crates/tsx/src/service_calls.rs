//! Calls of services in Rust: which arguments the source shows, so that the host can check them before
//! the module runs.

use std::collections::HashMap;

use oxc_ast::ast::{
    Argument, CallExpression, Expression, ImportDeclarationSpecifier, ObjectExpression,
    ObjectPropertyKind, Program, PropertyKey, Statement, UnaryOperator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Scoping;
use oxc_span::GetSpan;
use oxc_syntax::symbol::SymbolId;

use crate::scan::{SERVICES, export_name};
use crate::source::{Position, Source};

/// A call of a service that the module imports from `bine:services`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceCall {
    /// The name of the service.
    pub service: String,
    /// The position of the name in the call.
    pub position: Position,
    /// The arguments; `None`: they are no object literal.
    pub arguments: Option<CallArguments>,
}

/// The object literal with the arguments of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallArguments {
    /// Those that have their name in the source.
    pub named: Vec<CallArgument>,
    /// Whether there may be others: the literal has a spread or a computed name.
    pub is_open: bool,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallArgument {
    /// The name.
    pub name: String,
    /// The position of the name.
    pub position: Position,
    /// The kind of the value, as far as the source shows it.
    pub value: LiteralKind,
}

/// The kind of a value in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiteralKind {
    /// A text, which is known unless it is a template.
    Text(Option<String>),
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `null`.
    Null,
    /// An array.
    List,
    /// An object.
    Object,
    /// A function.
    Function,
    /// No literal.
    Other,
}

/// Collects the calls of a program, in the order of the source.
pub(crate) fn collect(
    source: &Source<'_>,
    program: &Program<'_>,
    scoping: &Scoping,
) -> Vec<ServiceCall> {
    let mut finder = CallFinder { source, scoping, imported: HashMap::new(), found: Vec::new() };
    for statement in &program.body {
        let Statement::ImportDeclaration(import) = statement else { continue };
        if import.source.value != SERVICES {
            continue;
        }
        for specifier in import.specifiers.as_ref().map_or(&[][..], |list| list.as_slice()) {
            let (local, name) = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(named) => {
                    (&named.local, Some(export_name(&named.imported)))
                }
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(all) => (&all.local, None),
                ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => continue,
            };
            if let Some(symbol) = local.symbol_id.get() {
                finder.imported.insert(symbol, name);
            }
        }
    }
    if !finder.imported.is_empty() {
        finder.visit_program(program);
    }
    finder.found
}

struct CallFinder<'c> {
    source: &'c Source<'c>,
    scoping: &'c Scoping,
    /// The names of the services by local variables; `None`: all services.
    imported: HashMap<SymbolId, Option<String>>,
    found: Vec<ServiceCall>,
}

impl<'a> Visit<'a> for CallFinder<'_> {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Some(service) = self.service(&call.callee) {
            let position = self.source.place(call.callee.span().start);
            let arguments = match call.arguments.as_slice() {
                [] => Some(CallArguments::default()),
                [Argument::ObjectExpression(object)] => Some(self.arguments(object)),
                _ => None,
            };
            self.found.push(ServiceCall { service, position, arguments });
        }
        walk::walk_call_expression(self, call);
    }
}

impl CallFinder<'_> {
    /// The service that an expression names.
    fn service(&self, callee: &Expression<'_>) -> Option<String> {
        match callee.get_inner_expression() {
            Expression::Identifier(_) => self.imported(callee)?.clone(),
            Expression::StaticMemberExpression(member) => match self.imported(&member.object)? {
                None => Some(member.property.name.to_string()),
                Some(_) => None,
            },
            _ => None,
        }
    }

    fn imported(&self, expression: &Expression<'_>) -> Option<&Option<String>> {
        let Expression::Identifier(name) = expression.get_inner_expression() else { return None };
        let symbol = self.scoping.get_reference(name.reference_id.get()?).symbol_id()?;
        self.imported.get(&symbol)
    }

    fn arguments(&self, object: &ObjectExpression<'_>) -> CallArguments {
        let mut arguments = CallArguments::default();
        for property in &object.properties {
            let named = match property {
                ObjectPropertyKind::ObjectProperty(property) if !property.computed => {
                    let name = match &property.key {
                        PropertyKey::StaticIdentifier(name) => Some(name.name.to_string()),
                        PropertyKey::StringLiteral(name) => Some(name.value.to_string()),
                        _ => None,
                    };
                    name.map(|name| CallArgument {
                        name,
                        position: self.source.place(property.key.span().start),
                        value: kind(&property.value),
                    })
                }
                _ => None,
            };
            match named {
                Some(named) => arguments.named.push(named),
                None => arguments.is_open = true,
            }
        }
        arguments
    }
}

fn kind(value: &Expression<'_>) -> LiteralKind {
    match value.get_inner_expression() {
        Expression::StringLiteral(text) => LiteralKind::Text(Some(text.value.to_string())),
        Expression::TemplateLiteral(_) => LiteralKind::Text(None),
        Expression::NumericLiteral(_) => LiteralKind::Number,
        Expression::UnaryExpression(unary)
            if unary.operator == UnaryOperator::UnaryNegation
                && matches!(unary.argument, Expression::NumericLiteral(_)) =>
        {
            LiteralKind::Number
        }
        Expression::BooleanLiteral(_) => LiteralKind::Boolean,
        Expression::NullLiteral(_) => LiteralKind::Null,
        Expression::ArrayExpression(_) => LiteralKind::List,
        Expression::ObjectExpression(_) => LiteralKind::Object,
        Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => {
            LiteralKind::Function
        }
        _ => LiteralKind::Other,
    }
}
