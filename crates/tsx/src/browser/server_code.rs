//! Globals of browsers in code that runs on the server.

use oxc_ast::ast::{IdentifierReference, Program, TSType, UnaryExpression};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Scoping;
use oxc_span::Span;
use oxc_syntax::operator::UnaryOperator;

use super::globals;
use crate::diagnostic::Fault;

/// Reports the globals that only browsers have. `is_moved`: whether a place also, or only, runs in the
/// browser.
pub(super) fn check(
    program: &Program<'_>,
    scoping: &Scoping,
    is_moved: impl Fn(&IdentifierReference<'_>) -> bool,
    faults: &mut Vec<Fault>,
) {
    let mut finder = Finder { scoping, found: Vec::new(), is_moved };
    finder.visit_program(program);
    for (name, span) in finder.found {
        let message = format!(
            "only browsers have `{name}`, and this code runs on the server: use it in a handler, `onclick={{() => ..}}`, or in a file `.browser.ts`"
        );
        faults.push(Fault::new(span, message));
    }
}

struct Finder<'f, F> {
    scoping: &'f Scoping,
    found: Vec<(String, Span)>,
    is_moved: F,
}

impl<'a, F: Fn(&IdentifierReference<'_>) -> bool> Visit<'a> for Finder<'_, F> {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        let reference = it.reference_id.get().map(|one| self.scoping.get_reference(one));
        let is_global = reference.is_some_and(|one| one.is_value() && one.symbol_id().is_none());
        if is_global && globals::is_of_browsers_only(&it.name) && !(self.is_moved)(it) {
            self.found.push((it.name.to_string(), it.span));
        }
    }

    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        // `typeof document` asks whether the name exists.
        if it.operator != UnaryOperator::Typeof {
            walk::walk_unary_expression(self, it);
        }
    }

    fn visit_ts_type(&mut self, _: &TSType<'a>) {}
}
