//! Lists of rows: `list.map((row) => <li>{row.text}</li>)` with a callback whose markup depends only
//! on columns of its parameter and on values that are known before the first row.
//!
//! Such a callback reads own values and has no effect, so the host may write the rows itself, by a
//! row template. The callback stays in the code: it runs for lists that the host cannot write in the
//! same way, such as those with getters.

use oxc_ast::ast::{
    Argument, ArrowFunctionBody, ArrowFunctionExpression, BindingPattern, CallExpression,
    Expression, IdentifierReference, JSXAttributeItem, JSXAttributeValue, JSXChild, JSXElement,
    JSXExpression, PropertyKey, Statement, StaticMemberExpression,
};
use oxc_ast_visit::Visit as _;
use oxc_semantic::Scoping;
use oxc_span::Span;
use oxc_syntax::scope::ScopeId;
use oxc_syntax::symbol::SymbolFlags;

use super::{Emitter, Generator, is_component, is_region, nodes};
use crate::scan::Imports;
use crate::text::literal;

/// The methods of a query that return rows, with a limit.
const LIMITED: [&str; 3] = ["newest", "oldest", "list"];

/// The most values that a callback may capture: `$rows` has a parameter for each.
const MAX_CAPTURED: usize = 4;

/// The row template of a list.
#[derive(Debug)]
pub(super) struct RowTemplate {
    /// The template of the markup.
    template: usize,
    /// The value of each hole, as code: the name of a column, or the position of a captured value.
    values: Vec<String>,
}

impl RowTemplate {
    /// The declaration of the template.
    pub(super) fn declaration(&self, prefix: &str) -> String {
        format!("{prefix}row({prefix}m{},[{}])", self.template, self.values.join(","))
    }
}

/// Finds the lists among the values that a hole may have, and marks their calls.
pub(super) fn mark(generator: &mut Generator<'_>, expression: &Expression<'_>) {
    match expression {
        Expression::ParenthesizedExpression(inner) => mark(generator, &inner.expression),
        Expression::LogicalExpression(logical) => mark(generator, &logical.right),
        Expression::ConditionalExpression(choice) => {
            mark(generator, &choice.consequent);
            mark(generator, &choice.alternate);
        }
        Expression::CallExpression(call) if read(generator, call).is_some() => {
            generator.row_calls.insert(place(call.span));
        }
        _ => {}
    }
}

/// Writes a call that was marked.
pub(super) fn emit(generator: &mut Generator<'_>, call: &CallExpression<'_>) {
    // The same reading has marked it.
    let Some(rows) = read(generator, call) else { return };
    let prefix = generator.names.prefix.clone();
    let mut emitter = Emitter::new(call.span);
    emitter.put(&format!("{prefix}rows({prefix}r{},", generator.rows.len()));
    emitter.expression(generator, rows.list);
    emitter.put(&format!(",\"{}\",", rows.method));
    match rows.limit {
        Some(limit) => emitter.expression(generator, limit),
        None => emitter.put("null"),
    }
    emitter.put(",");
    // The markup of the callback has no other markup in it.
    let template = generator.templates.len();
    let values = rows.values.clone();
    generator.rows.push(RowTemplate { template, values });
    emitter.keep(generator, rows.callback.span);
    generator.visit_arrow_function_expression(rows.callback);
    for name in &rows.captured {
        emitter.put(&format!(",{name}"));
    }
    emitter.put(")");
    emitter.finish(generator);
    debug_assert_eq!(generator.templates[template].hole_count(), rows.values.len());
}

/// A list that the host may write.
struct RowsCall<'e, 'a> {
    list: &'e Expression<'a>,
    /// The method that returns the rows and is mapped at once, or `map` itself.
    method: &'static str,
    limit: Option<&'e Expression<'a>>,
    callback: &'e ArrowFunctionExpression<'a>,
    values: Vec<String>,
    captured: Vec<&'e str>,
}

/// The call as one of `map` with such a callback.
fn read<'e, 'a>(
    generator: &Generator<'_>,
    call: &'e CallExpression<'a>,
) -> Option<RowsCall<'e, 'a>> {
    let (mapped, [Argument::ArrowFunctionExpression(callback)]) = method_call(call, "map")? else {
        return None;
    };
    let (values, captured) = {
        let mut reader = HoleReader::of(generator, callback)?;
        reader.element(returned(callback)?)?;
        // A pattern reads all of its properties, also those that no hole shows.
        let RowPattern { names, .. } = &reader.row;
        names.iter().all(|(_, column)| reader.values.contains(&literal(column))).then_some(())?;
        (reader.values, reader.captured)
    };
    let rows = RowsCall { list: mapped, method: "map", limit: None, callback, values, captured };
    let Expression::CallExpression(query) = mapped else { return Some(rows) };
    if let Some((list, [])) = method_call(query, "all") {
        return Some(RowsCall { list, method: "all", ..rows });
    }
    for method in LIMITED {
        if let Some((list, [limit])) = method_call(query, method)
            && let Some(limit) = limit.as_expression().filter(|limit| is_simple(limit))
        {
            return Some(RowsCall { list, method, limit: Some(limit), ..rows });
        }
    }
    Some(rows)
}

/// The object and the arguments of a call of this method.
fn method_call<'e, 'a>(
    call: &'e CallExpression<'a>,
    method: &str,
) -> Option<(&'e Expression<'a>, &'e [Argument<'a>])> {
    let Expression::StaticMemberExpression(member) = &call.callee else { return None };
    let is_plain = !call.optional && !member.optional && call.type_arguments.is_none();
    (is_plain && member.property.name == method).then_some((&member.object, &call.arguments[..]))
}

/// Whether the value of an expression may be read before the method is found: no code runs for it.
fn is_simple(expression: &Expression<'_>) -> bool {
    matches!(expression, Expression::NumericLiteral(_) | Expression::Identifier(_))
}

/// The markup that a callback returns, if it does nothing else.
fn returned<'e, 'a>(callback: &'e ArrowFunctionExpression<'a>) -> Option<&'e JSXElement<'a>> {
    let mut result = match &callback.body {
        ArrowFunctionBody::FunctionBody(body) => match body.statements.as_slice() {
            [Statement::ReturnStatement(last)] if body.directives.is_empty() => {
                last.argument.as_ref()?
            }
            _ => return None,
        },
        body => body.as_expression()?,
    };
    loop {
        result = match result {
            Expression::ParenthesizedExpression(inner) => &inner.expression,
            Expression::JSXElement(element) => return Some(element),
            _ => return None,
        }
    }
}

/// The parameter of a callback: one name for the row, or names for columns.
struct RowPattern<'e> {
    row: Option<&'e str>,
    /// Local names, and their columns.
    names: Vec<(&'e str, &'e str)>,
}

/// Reads the holes of a callback, in the order in which the generator writes them.
struct HoleReader<'g, 'e> {
    imports: &'g Imports,
    scoping: &'g Scoping,
    callback: ScopeId,
    start: u32,
    row: RowPattern<'e>,
    values: Vec<String>,
    captured: Vec<&'e str>,
}

impl<'g, 'e> HoleReader<'g, 'e> {
    fn of(generator: &Generator<'g>, callback: &'e ArrowFunctionExpression<'_>) -> Option<Self> {
        let [parameter] = callback.params.items.as_slice() else { return None };
        if callback.r#async || callback.params.rest.is_some() || parameter.initializer.is_some() {
            return None;
        }
        Some(Self {
            imports: generator.imports,
            scoping: generator.scoping,
            callback: callback.scope_id.get()?,
            start: callback.span.start,
            row: RowPattern::of(&parameter.pattern)?,
            values: Vec::new(),
            captured: Vec::new(),
        })
    }

    /// Reads the holes of an element; `None`: a hole needs the callback.
    fn element(&mut self, element: &'e JSXElement<'_>) -> Option<()> {
        if is_component(element, self.imports) || is_region(element, self.imports) {
            return None;
        }
        let name = nodes::element_name(&element.opening_element.name);
        if name == "head" || bine_vocabulary::is_raw_text(&name) {
            return None;
        }
        for item in &element.opening_element.attributes {
            let JSXAttributeItem::Attribute(attribute) = item else { return None };
            match &attribute.value {
                value if !is_hole(value.as_ref()) => {}
                Some(JSXAttributeValue::ExpressionContainer(container)) => {
                    self.value(&container.expression)?;
                }
                _ => return None,
            }
        }
        self.children(&element.children)
    }

    fn children(&mut self, children: &'e [JSXChild<'_>]) -> Option<()> {
        for child in children {
            match child {
                JSXChild::Text(_) => {}
                JSXChild::Element(element) => self.element(element)?,
                JSXChild::Fragment(fragment) => self.children(&fragment.children)?,
                JSXChild::ExpressionContainer(container) => {
                    let expression = &container.expression;
                    let is_constant = nodes::constant_text(expression).is_some()
                        || matches!(expression, JSXExpression::EmptyExpression(_));
                    if !is_constant {
                        self.value(expression)?;
                    }
                }
                JSXChild::Spread(_) => return None,
            }
        }
        Some(())
    }

    /// Reads the value of a hole.
    fn value(&mut self, expression: &'e JSXExpression<'_>) -> Option<()> {
        let value = match expression {
            JSXExpression::StaticMemberExpression(member) => literal(self.column(member)?),
            JSXExpression::Identifier(name) => self.identifier(name)?,
            _ => return None,
        };
        self.values.push(value);
        Some(())
    }

    /// The column in `row.column`.
    fn column(&self, member: &'e StaticMemberExpression<'_>) -> Option<&'e str> {
        let Expression::Identifier(object) = &member.object else { return None };
        let is_row = !member.optional && self.row.row == Some(object.name.as_str());
        is_row.then_some(member.property.name.as_str())
    }

    /// A name of a column, or a value that the callback captures.
    fn identifier(&mut self, name: &'e IdentifierReference<'_>) -> Option<String> {
        let own = name.name.as_str();
        if self.row.row == Some(own) {
            return None;
        }
        if let Some((_, column)) = self.row.names.iter().find(|(local, _)| *local == own) {
            return Some(literal(column));
        }
        if !self.is_known(name) {
            return None;
        }
        let known = self.captured.iter().position(|other| *other == own);
        let at = known.unwrap_or_else(|| {
            self.captured.push(own);
            self.captured.len() - 1
        });
        (at < MAX_CAPTURED).then(|| at.to_string())
    }

    /// Whether a variable surely has a value before the list is read: the callback might not run at
    /// all, and then it throws no error for a variable without one. So it is a parameter, or it is
    /// declared before in the same function.
    fn is_known(&self, name: &IdentifierReference<'_>) -> bool {
        let scoping = self.scoping;
        let reference = name.reference_id.get().map(|reference| scoping.get_reference(reference));
        let Some(symbol) = reference.and_then(oxc_semantic::Reference::symbol_id) else {
            return false;
        };
        let flags = scoping.symbol_flags(symbol);
        let is_value = flags.intersects(
            SymbolFlags::FunctionScopedVariable
                | SymbolFlags::BlockScopedVariable
                | SymbolFlags::ConstVariable,
        );
        let outside = scoping.scope_parent_id(self.callback);
        let own = outside.and_then(|scope| self.function_of(scope));
        is_value
            && scoping.symbol_span(symbol).end <= self.start
            && own.is_some()
            && (flags.contains(SymbolFlags::FunctionScopedVariable)
                && self.function_of(scoping.symbol_scope_id(symbol)).is_some()
                || self.function_of(scoping.symbol_scope_id(symbol)) == own)
    }

    /// The innermost function around a scope.
    fn function_of(&self, scope: ScopeId) -> Option<ScopeId> {
        self.scoping
            .scope_ancestors(scope)
            .find(|scope| self.scoping.scope_flags(*scope).is_function())
    }
}

impl<'e> RowPattern<'e> {
    fn of(pattern: &'e BindingPattern<'_>) -> Option<Self> {
        match pattern {
            BindingPattern::BindingIdentifier(name) => {
                Some(Self { row: Some(name.name.as_str()), names: Vec::new() })
            }
            BindingPattern::ObjectPattern(object) if object.rest.is_none() => {
                let names = object.properties.iter().map(|property| {
                    let (PropertyKey::StaticIdentifier(key), false) =
                        (&property.key, property.computed)
                    else {
                        return None;
                    };
                    let BindingPattern::BindingIdentifier(local) = &property.value else {
                        return None;
                    };
                    Some((local.name.as_str(), key.name.as_str()))
                });
                Some(Self { row: None, names: names.collect::<Option<_>>()? })
            }
            _ => None,
        }
    }
}

/// Whether an attribute has a hole.
fn is_hole(value: Option<&JSXAttributeValue<'_>>) -> bool {
    matches!(nodes::constant(value), bine_markup::Value::Hole(()))
}

/// The part of the source that a list replaces. Calls that begin at one place differ in their ends.
pub(super) type CallPlace = (u32, u32);

/// The place of a call.
pub(super) fn place(span: Span) -> CallPlace {
    (span.start, span.end)
}
