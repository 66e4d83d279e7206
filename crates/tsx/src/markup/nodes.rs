//! The tree of markup that the shared checks read, built from JSX.

use std::collections::HashSet;

use bine_markup::{Attribute as Checked, Branch, Element, Node, Value};
use oxc_ast::ast::{
    Argument, ArrowFunctionBody, Expression, JSXAttribute, JSXAttributeItem, JSXAttributeName,
    JSXAttributeValue, JSXChild, JSXElement, JSXElementName, JSXExpression, LogicalOperator,
    Statement,
};
use oxc_span::GetSpan;

use super::{is_component, is_handler, is_region, raw_text};
use crate::scan::Imports;
use crate::source::Source;
use crate::text::{child, decoded};

pub(super) type Attribute<'a> = JSXAttribute<'a>;

/// Builds trees. An origin is a byte offset.
pub(super) struct Builder<'b> {
    source: &'b Source<'b>,
    imports: &'b Imports,
    /// The starts of the roots that became part of a tree.
    checked: &'b mut HashSet<u32>,
}

impl<'b> Builder<'b> {
    pub(super) fn new(
        source: &'b Source<'b>,
        imports: &'b Imports,
        checked: &'b mut HashSet<u32>,
    ) -> Self {
        Self { source, imports, checked }
    }

    /// The nodes of an element: itself, or a hole for the result of a component.
    pub(super) fn element(&mut self, element: &JSXElement<'_>) -> Vec<Node<()>> {
        let opening = &element.opening_element;
        let origin = opening.name.span().start as usize;
        if is_component(element, self.imports) {
            return vec![Node::Hole((), origin)];
        }
        let name = element_name(&opening.name);
        let is_raw = bine_vocabulary::is_raw_text(&name);
        let children = self.children(&element.children, is_raw);
        let attributes = attributes(element)
            // The generator checks handlers, in all spellings.
            .filter(|attribute| {
                let is_constant = !matches!(constant(attribute.value.as_ref()), Value::Hole(()));
                is_constant || !is_handler(&attribute_name(&attribute.name))
            })
            .map(|attribute| Checked {
                name: attribute_name(&attribute.name),
                // A name with a colon is not looked up either.
                is_quoted: false,
                value: constant(attribute.value.as_ref()),
                origin: attribute.name.span().start as usize,
                value_origin: attribute
                    .value
                    .as_ref()
                    .map_or(attribute.span.start, |value| value.span().start)
                    as usize,
            })
            .collect();
        let is_spread =
            |item: &JSXAttributeItem<'_>| matches!(item, JSXAttributeItem::SpreadAttribute(_));
        let has_more_attributes = opening.attributes.iter().any(is_spread);
        let built = Element { name, origin, has_more_attributes, attributes, children };
        vec![if is_region(element, self.imports) {
            Node::Live(built)
        } else {
            Node::Element(built)
        }]
    }

    pub(super) fn children(&mut self, children: &[JSXChild<'_>], is_raw: bool) -> Vec<Node<()>> {
        let mut nodes = Vec::new();
        for one in children {
            match one {
                JSXChild::Text(text) if is_raw => nodes.push(Node::RawText(text.value.to_string())),
                JSXChild::Text(text) => {
                    let raw = raw_text(self.source, text.span);
                    let content = child(raw);
                    let blank = raw.len() - raw.trim_start().len();
                    nodes.push(Node::Text(content, text.span.start as usize + blank));
                }
                JSXChild::Element(element) => nodes.extend(self.element(element)),
                JSXChild::Fragment(fragment) => {
                    nodes.extend(self.children(&fragment.children, is_raw));
                }
                JSXChild::ExpressionContainer(container) => {
                    match container.expression.as_expression() {
                        Some(_) if is_raw => nodes.push(Node::RawHole(())),
                        Some(expression) => nodes.extend(self.hole(expression)),
                        None => {}
                    }
                }
                JSXChild::Spread(spread) => {
                    nodes.push(Node::Hole((), spread.span.start as usize));
                }
            }
        }
        nodes
    }

    /// The nodes of a hole: the markup in its branches, as far as its form is known.
    fn hole(&mut self, expression: &Expression<'_>) -> Vec<Node<()>> {
        match expression {
            Expression::ParenthesizedExpression(inner) => self.hole(&inner.expression),
            Expression::JSXElement(element) => {
                self.checked.insert(element.span.start);
                self.element(element)
            }
            Expression::JSXFragment(fragment) => {
                self.checked.insert(fragment.span.start);
                self.children(&fragment.children, false)
            }
            Expression::StringLiteral(text) => {
                vec![Node::Text(text.value.to_string(), text.span.start as usize)]
            }
            Expression::NullLiteral(_) | Expression::BooleanLiteral(_) => Vec::new(),
            Expression::LogicalExpression(logical) => {
                let right = self.hole(&logical.right);
                match logical.operator {
                    LogicalOperator::And => conditional(right, Vec::new()),
                    _ => {
                        let left = self.hole(&logical.left);
                        conditional(left, right)
                    }
                }
            }
            Expression::ConditionalExpression(choice) => {
                let first = self.hole(&choice.consequent);
                let second = self.hole(&choice.alternate);
                conditional(first, second)
            }
            Expression::CallExpression(call) => match self.loop_body(&call.callee, &call.arguments)
            {
                Some(body) => vec![Node::For { pattern: (), iterator: (), body }],
                None => vec![Node::Hole((), expression.span().start as usize)],
            },
            _ => vec![Node::Hole((), expression.span().start as usize)],
        }
    }

    /// The markup of one iteration of `list.map(item => markup)`.
    fn loop_body(
        &mut self,
        callee: &Expression<'_>,
        arguments: &[Argument<'_>],
    ) -> Option<Vec<Node<()>>> {
        let Expression::StaticMemberExpression(member) = callee else { return None };
        if !["map", "flatMap"].contains(&member.property.name.as_str()) {
            return None;
        }
        let result = match arguments.first()? {
            Argument::ArrowFunctionExpression(arrow) => match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => returned(&body.statements)?,
                body => body.as_expression()?,
            },
            Argument::FunctionExpression(function) => {
                returned(&function.body.as_ref()?.statements)?
            }
            _ => return None,
        };
        Some(self.hole(result))
    }
}

fn returned<'r, 'a>(statements: &'r [Statement<'a>]) -> Option<&'r Expression<'a>> {
    match statements.last()? {
        Statement::ReturnStatement(last) => last.argument.as_ref(),
        _ => None,
    }
}

fn conditional(first: Vec<Node<()>>, otherwise: Vec<Node<()>>) -> Vec<Node<()>> {
    vec![Node::If { branches: vec![Branch { head: (), body: first }], otherwise }]
}

/// The attributes of an element without spreads.
pub(super) fn attributes<'n, 'a>(
    element: &'n JSXElement<'a>,
) -> impl Iterator<Item = &'n JSXAttribute<'a>> {
    element.opening_element.attributes.iter().filter_map(|item| match item {
        JSXAttributeItem::Attribute(attribute) => Some(&**attribute),
        JSXAttributeItem::SpreadAttribute(_) => None,
    })
}

/// The value of an attribute, if it is constant. `name={true}` is the bare attribute.
pub(super) fn constant(value: Option<&JSXAttributeValue<'_>>) -> Value<()> {
    match value {
        None => Value::Bare,
        Some(JSXAttributeValue::StringLiteral(text)) => Value::Text(decoded(&text.value)),
        Some(JSXAttributeValue::ExpressionContainer(container)) => match &container.expression {
            JSXExpression::BooleanLiteral(literal) if literal.value => Value::Bare,
            JSXExpression::NumericLiteral(number) => {
                let digits = number.raw.as_ref().map_or("", |raw| raw.as_str());
                let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit())
                    && (digits == "0" || !digits.starts_with('0'))
                    && (1..=15).contains(&digits.len());
                if is_decimal { Value::Text(digits.to_owned()) } else { Value::Hole(()) }
            }
            other => constant_text(other).map_or(Value::Hole(()), Value::Text),
        },
        Some(_) => Value::Hole(()),
    }
}

/// The text of a string literal or of a template literal without holes.
pub(super) fn constant_text(expression: &JSXExpression<'_>) -> Option<String> {
    match expression {
        JSXExpression::StringLiteral(text) if !text.lone_surrogates => Some(text.value.to_string()),
        JSXExpression::TemplateLiteral(template) if template.expressions.is_empty() => {
            let quasi = template.quasis.first().filter(|quasi| !quasi.lone_surrogates)?;
            quasi.value.cooked.map(|text| text.to_string())
        }
        _ => None,
    }
}

/// The name of an element as written.
pub(super) fn element_name(name: &JSXElementName<'_>) -> String {
    match name {
        JSXElementName::Identifier(name) => name.name.to_string(),
        JSXElementName::IdentifierReference(name) => name.name.to_string(),
        JSXElementName::NamespacedName(name) => {
            format!("{}:{}", name.namespace.name, name.name.name)
        }
        JSXElementName::MemberExpression(name) => name.property.name.to_string(),
        JSXElementName::ThisExpression(_) => "this".to_owned(),
    }
}

/// The name of an attribute as written.
pub(super) fn attribute_name(name: &JSXAttributeName<'_>) -> String {
    match name {
        JSXAttributeName::Identifier(name) => name.name.to_string(),
        JSXAttributeName::NamespacedName(name) => {
            format!("{}:{}", name.namespace.name, name.name.name)
        }
    }
}
