//! The names that a function uses from outside, as far as they decide whether it can run in a browser.

use std::collections::HashSet;

use oxc_ast::ast::{
    ArrowFunctionExpression, BinaryExpression, CallExpression, ComputedMemberExpression,
    ConditionalExpression, Expression, ExpressionStatement, Function, IdentifierReference,
    IfStatement, ImportExpression, ImportMeta, JSXElement, JSXFragment, NewExpression, NewTarget,
    ObjectProperty, SimpleAssignmentTarget, StaticMemberExpression, Super, TSType,
    TaggedTemplateExpression, TemplateLiteral, ThisExpression, UnaryExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Scoping;
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::UnaryOperator;
use oxc_syntax::reference::ReferenceId;
use oxc_syntax::scope::{ScopeFlags, ScopeId};
use oxc_syntax::symbol::SymbolId;

use super::globals;
use crate::diagnostic::Fault;

/// A use of a name that is declared outside of the function, or nowhere.
pub(super) struct Use {
    pub(super) name: String,
    pub(super) reference: Option<ReferenceId>,
    /// The declaration; `None` for a global.
    pub(super) symbol: Option<SymbolId>,
    /// The names after it: `id` in `message.id`. Without the name of a method that is called.
    pub(super) path: Vec<String>,
    /// The place of the name and its path.
    pub(super) span: Span,
    /// Whether it is a property in the short form, `{ name }`.
    pub(super) is_shorthand: bool,
    /// Whether it, or its property, is assigned to.
    pub(super) is_changed: bool,
    /// Its method that is called.
    pub(super) method: Option<String>,
    /// Whether it is called, and the result used as if it were no promise, or not at all.
    pub(super) is_unawaited: bool,
}

impl Use {
    /// The use of a name in its own place.
    pub(super) fn of_name(scoping: &Scoping, name: &IdentifierReference<'_>) -> Self {
        let reference = name.reference_id.get();
        Self {
            name: name.name.to_string(),
            reference,
            symbol: reference.and_then(|one| scoping.get_reference(one).symbol_id()),
            path: Vec::new(),
            span: name.span,
            is_shorthand: false,
            is_changed: false,
            method: None,
            is_unawaited: false,
        }
    }
}

/// The names that a function, or the value of a constant, uses.
pub(super) struct References<'r> {
    scoping: &'r Scoping,
    /// The scope of the function; `None` for the value of a constant.
    own: Option<ScopeId>,
    /// Functions around the current place that have a `this`, and all.
    with_this: usize,
    functions: usize,
    is_target: bool,
    /// The method that the current expression is called with.
    method: Option<String>,
    /// The starts of the names whose calls are not awaited.
    unawaited: HashSet<u32>,
    pub(super) uses: Vec<Use>,
    pub(super) faults: Vec<Fault>,
    /// Whether it decides about the event while the event is dispatched.
    pub(super) acts_at_once: bool,
}

/// The methods that affect an event only while it is dispatched.
const AT_ONCE: [&str; 5] = [
    "preventDefault",
    "stopPropagation",
    "stopImmediatePropagation",
    "dataTransfer",
    "clipboardData",
];

/// The methods of a promise.
const OF_PROMISES: [&str; 3] = ["then", "catch", "finally"];

impl<'r> References<'r> {
    fn new(scoping: &'r Scoping, own: Option<ScopeId>) -> Self {
        Self {
            scoping,
            own,
            with_this: 0,
            functions: 0,
            is_target: false,
            method: None,
            unawaited: HashSet::new(),
            uses: Vec::new(),
            faults: Vec::new(),
            acts_at_once: false,
        }
    }

    /// Those of an arrow function or a function expression; `None` for any other expression.
    pub(super) fn of_handler(scoping: &'r Scoping, handler: &Expression<'_>) -> Option<Self> {
        let own = match handler {
            Expression::ArrowFunctionExpression(arrow) => arrow.scope_id.get(),
            Expression::FunctionExpression(function) => function.scope_id.get(),
            _ => return None,
        };
        let mut found = Self::new(scoping, own);
        match handler {
            Expression::ArrowFunctionExpression(arrow) => {
                walk::walk_arrow_function_expression(&mut found, arrow);
            }
            Expression::FunctionExpression(function) => {
                walk::walk_function(&mut found, function, ScopeFlags::Function);
            }
            _ => {}
        }
        Some(found)
    }

    /// Those of a function of the module.
    pub(super) fn of_function(scoping: &'r Scoping, function: &Function<'_>) -> Self {
        let mut found = Self::new(scoping, function.scope_id.get());
        found.functions = 1;
        walk::walk_function(&mut found, function, ScopeFlags::Function);
        found
    }

    /// Those of the value of a constant of the module. Outside of functions, it may call only what has
    /// no effect.
    pub(super) fn of_constant(scoping: &'r Scoping, value: &Expression<'_>) -> Self {
        let mut found = Self::new(scoping, None);
        found.visit_expression(value);
        found
    }

    fn refuse(&mut self, span: Span, message: &str) {
        self.faults.push(Fault::new(span, message));
    }

    fn symbol(&self, name: &IdentifierReference<'_>) -> Option<SymbolId> {
        let reference = name.reference_id.get()?;
        self.scoping.get_reference(reference).symbol_id()
    }

    /// Whether a declaration is within the function or the value. A constant has the scopes of its own
    /// functions only.
    fn is_own(&self, symbol: SymbolId) -> bool {
        let scope = self.scoping.symbol_scope_id(symbol);
        match self.own {
            Some(own) => scope == own || self.scoping.scope_is_descendant_of(scope, own),
            None => scope != self.scoping.root_scope_id(),
        }
    }

    /// Notes calls whose results are used as if they were no promises, or not at all.
    fn note_unawaited(&mut self, value: &Expression<'_>) {
        match value.get_inner_expression() {
            Expression::CallExpression(call) => {
                if let Expression::Identifier(name) = call.callee.get_inner_expression() {
                    self.unawaited.insert(name.span.start);
                }
            }
            Expression::LogicalExpression(both) => self.note_unawaited(&both.right),
            Expression::ConditionalExpression(choice) => {
                self.note_unawaited(&choice.consequent);
                self.note_unawaited(&choice.alternate);
            }
            Expression::SequenceExpression(list) => {
                list.expressions.iter().for_each(|one| self.note_unawaited(one));
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &IdentifierReference<'_>, path: Vec<String>, end: u32, short: bool) {
        let method = self.method.take();
        let reference = name.reference_id.get();
        if reference.is_some_and(|reference| !self.scoping.get_reference(reference).is_value()) {
            return;
        }
        let symbol = self.symbol(name);
        if symbol.is_some_and(|symbol| self.is_own(symbol)) {
            return;
        }
        if symbol.is_none() && name.name == "arguments" {
            if self.with_this == 0 {
                self.refuse(name.span, "`arguments` is not supported here: name the parameters");
            }
            return;
        }
        self.uses.push(Use {
            name: name.name.to_string(),
            reference,
            symbol,
            path,
            span: Span::new(name.span.start, end),
            is_shorthand: short,
            is_changed: self.is_target,
            method,
            is_unawaited: self.unawaited.contains(&name.span.start),
        });
    }

    /// Adds `name.a.b`. Returns whether the expression has this form.
    fn chain(&mut self, member: &StaticMemberExpression<'_>) -> bool {
        let mut path = Vec::new();
        let mut last = member;
        loop {
            if last.optional {
                return false;
            }
            path.push(last.property.name.to_string());
            match &last.object {
                Expression::StaticMemberExpression(inner) => last = inner,
                Expression::Identifier(name) => {
                    path.reverse();
                    self.add(name, path, member.span.end, false);
                    return true;
                }
                _ => return false,
            }
        }
    }

    /// Checks a call in the value of a constant.
    fn call(&mut self, callee: &Expression<'_>) {
        let mut root = callee;
        while let Expression::StaticMemberExpression(member) = root {
            root = &member.object;
        }
        let is_pure = match root {
            Expression::Identifier(name) => {
                self.symbol(name).is_none() && globals::is_pure(&name.name)
            }
            // A method of a literal.
            Expression::ArrayExpression(_)
            | Expression::StringLiteral(_)
            | Expression::TemplateLiteral(_)
            | Expression::CallExpression(_)
            | Expression::NewExpression(_) => true,
            _ => false,
        };
        if self.functions == 0 && self.own.is_none() && !is_pure {
            self.refuse(
                callee.span(),
                "the value is made by a call; pass it by a `const` of the page",
            );
        }
    }
}

impl<'a> Visit<'a> for References<'_> {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.add(it, Vec::new(), it.span.end, false);
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        self.acts_at_once |= AT_ONCE.contains(&it.property.name.as_str());
        if !OF_PROMISES.contains(&it.property.name.as_str()) {
            self.note_unawaited(&it.object);
        }
        if !self.chain(it) {
            let outer = std::mem::take(&mut self.is_target);
            walk::walk_static_member_expression(self, it);
            self.is_target = outer;
        }
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        self.note_unawaited(&it.object);
        self.visit_expression(&it.object);
        let outer = std::mem::take(&mut self.is_target);
        self.visit_expression(&it.expression);
        self.is_target = outer;
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.call(&it.callee);
        match &it.callee {
            // The method is a property of the value, which the browser has too.
            Expression::StaticMemberExpression(member) => {
                let method = member.property.name.as_str();
                self.acts_at_once |= AT_ONCE.contains(&method);
                if !OF_PROMISES.contains(&method) {
                    self.note_unawaited(&member.object);
                }
                self.method =
                    matches!(&member.object, Expression::Identifier(_)).then(|| method.to_owned());
                self.visit_expression(&member.object);
            }
            callee => self.visit_expression(callee),
        }
        for argument in &it.arguments {
            self.visit_argument(argument);
        }
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        self.note_unawaited(&it.expression);
        walk::walk_expression_statement(self, it);
    }

    fn visit_binary_expression(&mut self, it: &BinaryExpression<'a>) {
        self.note_unawaited(&it.left);
        self.note_unawaited(&it.right);
        walk::walk_binary_expression(self, it);
    }

    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        // `void save()` marks a call that is not awaited.
        if it.operator != UnaryOperator::Void {
            self.note_unawaited(&it.argument);
        }
        walk::walk_unary_expression(self, it);
    }

    fn visit_conditional_expression(&mut self, it: &ConditionalExpression<'a>) {
        self.note_unawaited(&it.test);
        walk::walk_conditional_expression(self, it);
    }

    fn visit_if_statement(&mut self, it: &IfStatement<'a>) {
        self.note_unawaited(&it.test);
        walk::walk_if_statement(self, it);
    }

    fn visit_template_literal(&mut self, it: &TemplateLiteral<'a>) {
        it.expressions.iter().for_each(|one| self.note_unawaited(one));
        walk::walk_template_literal(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.call(&it.callee);
        walk::walk_new_expression(self, it);
    }

    fn visit_tagged_template_expression(&mut self, it: &TaggedTemplateExpression<'a>) {
        self.call(&it.tag);
        walk::walk_tagged_template_expression(self, it);
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        match &it.value {
            Expression::Identifier(name) if it.shorthand => {
                self.add(name, Vec::new(), name.span.end, true);
            }
            _ => walk::walk_object_property(self, it),
        }
    }

    fn visit_simple_assignment_target(&mut self, it: &SimpleAssignmentTarget<'a>) {
        let outer = std::mem::replace(&mut self.is_target, true);
        walk::walk_simple_assignment_target(self, it);
        self.is_target = outer;
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.with_this += 1;
        self.functions += 1;
        walk::walk_function(self, it, flags);
        self.with_this -= 1;
        self.functions -= 1;
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.functions += 1;
        walk::walk_arrow_function_expression(self, it);
        self.functions -= 1;
    }

    fn visit_this_expression(&mut self, it: &ThisExpression) {
        if self.with_this == 0 {
            let message = "`this` is not supported here: the element is `event.currentTarget`";
            self.refuse(it.span, message);
        }
    }

    fn visit_super(&mut self, it: &Super) {
        if self.with_this == 0 {
            self.refuse(it.span, "`super` is not supported here");
        }
    }

    fn visit_import_meta(&mut self, it: &ImportMeta) {
        self.refuse(it.span, "`import.meta` is not supported here");
    }

    fn visit_new_target(&mut self, it: &NewTarget) {
        if self.with_this == 0 {
            self.refuse(it.span, "`new.target` is not supported here");
        }
    }

    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        let message = "`import(..)` is not supported here: import a file `.browser.ts` at the start of the module";
        self.refuse(it.span, message);
    }

    fn visit_jsx_element(&mut self, it: &JSXElement<'a>) {
        self.refuse(it.span, MARKUP);
    }

    fn visit_jsx_fragment(&mut self, it: &JSXFragment<'a>) {
        self.refuse(it.span, MARKUP);
    }

    fn visit_ts_type(&mut self, _: &TSType<'a>) {}
}

const MARKUP: &str = "markup is written by the server: change the document by its methods, or call a service and \
                      show the result in a `<Live>` region";
