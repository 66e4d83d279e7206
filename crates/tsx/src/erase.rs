//! Types are replaced by blanks, so that every line and column of the code stays exact.
//!
//! Only erasable syntax is accepted: a construct of TypeScript that produces code is an error that
//! names the plain form. A blank may join two lines into one expression that a type has separated;
//! such a blank starts with a semicolon.

use std::collections::HashSet;

use oxc_ast::ast::{
    AccessorProperty, ArrowFunctionExpression, Class, ClassElement, Decorator,
    ExportAllDeclaration, ExportDeclaration, ExportDefaultDeclaration,
    ExportDefaultDeclarationKind, ExportFromDeclaration, ExportNamedDeclaration, FormalParameter,
    Function, ImportDeclaration, ImportDeclarationSpecifier, JSXOpeningElement, MethodDefinition,
    MethodDefinitionType, Program, PropertyDefinition, PropertyDefinitionType, Statement,
    TSAsExpression, TSEnumDeclaration, TSExportAssignment, TSImportEqualsDeclaration,
    TSInstantiationExpression, TSNamespaceDeclaration, TSNamespaceExportDeclaration,
    TSNonNullExpression, TSSatisfiesExpression, TSThisParameter, TSTypeAnnotation, TSTypeAssertion,
    TSTypeParameterDeclaration, TSTypeParameterInstantiation, VariableDeclaration,
    VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use crate::diagnostic::Fault;
use crate::edits::{Edits, is_line_end};

const ENUM: &str = "an `enum` produces code, which is not supported: write a union of literals, \
                    `type Color = \"red\" | \"green\"`, or `const Color = { Red: \"red\" } as const`";
const NAMESPACE: &str =
    "a `namespace` with values produces code, which is not supported: use a module, one file each";
const PARAMETER: &str = "a parameter property produces code, which is not supported: declare the field \
                         and assign it in the constructor, `this.name = name`";
const DECORATOR: &str =
    "decorators are not supported: call the function, `const decorated = decorate(value)`";
const IMPORT_EQUALS: &str =
    "`import .. = ..` is not supported: write `import { name } from \"./file.ts\"`";
const EXPORT_EQUALS: &str = "`export = ..` is not supported: write `export default ..`";
const EXPORT_NAMESPACE: &str =
    "`export as namespace` is not supported: modules have no global names; leave it out";
const ASSERTION: &str = "`<Type>value` is not supported: write `value as Type`";
const ACCESSOR: &str = "`accessor` fields are not supported: write a getter and a setter";

/// Blanks the types of a program and reports syntax that cannot be erased.
pub(crate) fn erase(
    source: &str,
    program: &Program<'_>,
    edits: &mut Edits,
    faults: &mut Vec<Fault>,
) {
    let mut eraser = Eraser { source, edits, faults, unterminated: HashSet::new() };
    eraser.visit_program(program);
}

struct Eraser<'e> {
    source: &'e str,
    edits: &'e mut Edits,
    faults: &'e mut Vec<Fault>,
    /// The ends of enclosing statements and fields without a semicolon.
    unterminated: HashSet<u32>,
}

impl Eraser<'_> {
    fn blank(&mut self, start: u32, end: u32) {
        if start < end {
            self.edits.blank(self.source, (start, end), "");
        }
    }

    /// Blanks a whole statement or member. The semicolon keeps the lines around it apart.
    fn blank_statement(&mut self, span: Span) {
        self.edits.blank(self.source, (span.start, span.end), ";");
    }

    /// Blanks the end of an expression. If it ends a statement without a semicolon, the next line
    /// must not continue the statement.
    fn blank_end(&mut self, start: u32, end: u32) {
        let first = if self.unterminated.contains(&end) { ";" } else { "" };
        self.edits.blank(self.source, (start, end), first);
    }

    fn refuse(&mut self, span: Span, message: &str) {
        self.faults.push(Fault::new(span, message));
    }

    /// Blanks the sign directly before a type or after a name: `?` or `!`.
    fn blank_mark(&mut self, from: u32, mark: char) {
        let rest = &self.source[from as usize..];
        let skipped = skip_trivia(rest);
        if rest[skipped..].starts_with(mark) {
            let at = from + skipped as u32;
            self.blank(at, at + 1);
        }
    }

    /// Blanks the keywords in `words` among the words before the name of a class member.
    fn blank_modifiers(&mut self, member: Span, name: u32, words: &[&str]) {
        let mut at = member.start;
        while at < name {
            let rest = &self.source[at as usize..name as usize];
            let skipped = skip_trivia(rest);
            at += skipped as u32;
            let rest = &rest[skipped..];
            let is_part = |letter: char| letter.is_ascii_alphabetic();
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            if length == 0 {
                return;
            }
            if words.contains(&&rest[..length]) {
                // `a = 1` on the line before would continue with `["b"]`.
                let first = if at == member.start { ";" } else { "" };
                self.edits.blank(self.source, (at, at + length as u32), first);
            }
            at += length as u32;
        }
    }

    /// Remembers a statement that ends without a semicolon.
    fn note_end(&mut self, span: Span) {
        if !self.source[..span.end as usize].ends_with(';') {
            self.unterminated.insert(span.end);
        }
    }

    fn specifiers<T: GetSpan>(&mut self, specifiers: &[T], is_type: impl Fn(&T) -> bool) {
        for specifier in specifiers.iter().filter(|specifier| is_type(specifier)) {
            let span = specifier.span();
            let rest = &self.source[span.end as usize..];
            let skipped = skip_trivia(rest);
            let comma = if rest[skipped..].starts_with(',') { skipped + 1 } else { 0 };
            self.blank(span.start, span.end + comma as u32);
        }
    }
}

/// The length of the white space and the comments at the start of `text`.
fn skip_trivia(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.find(is_line_end).map_or("", |end| &comment[end..]);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else {
            return text.len() - rest.len();
        }
    }
}

/// Words before a member that only types need.
const MODIFIERS: [&str; 6] = ["public", "private", "protected", "readonly", "override", "abstract"];

impl<'a> Visit<'a> for Eraser<'_> {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        match it {
            Statement::TSTypeAliasDeclaration(_)
            | Statement::TSInterfaceDeclaration(_)
            | Statement::TSExternalModuleDeclaration(_)
            | Statement::TSGlobalDeclaration(_) => return self.blank_statement(it.span()),
            Statement::ExpressionStatement(_)
            | Statement::VariableDeclaration(_)
            | Statement::ReturnStatement(_)
            | Statement::ThrowStatement(_)
            | Statement::DoWhileStatement(_)
            | Statement::ExportDeclaration(_)
            | Statement::ExportDefaultDeclaration(_) => self.note_end(it.span()),
            _ => {}
        }
        walk::walk_statement(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if it.declare || it.body.is_none() {
            return self.blank_statement(it.span);
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.specifiers(std::slice::from_ref(it), |_| true);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            self.refuse(it.span, PARAMETER);
        }
        if it.optional {
            self.blank_mark(it.pattern.span().end, '?');
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        // The parameters and `=>` must be on one line, and a line break in a type would separate
        // them: the parenthesis moves.
        let has_break =
            |span: Span| self.source[span.start as usize..span.end as usize].contains(is_line_end);
        let moves_opening = it
            .type_parameters
            .as_ref()
            .is_some_and(|types| has_break(Span::new(types.span.start, it.params.span.start)));
        let closing = it.params.span.end;
        let moves_closing = it
            .return_type
            .as_ref()
            .is_some_and(|types| has_break(Span::new(closing, types.span.end)));
        let opening = it.params.span.start;
        if let Some(types) = &it.type_parameters {
            let first = if moves_opening { "(" } else { "" };
            self.edits.blank(self.source, (types.span.start, types.span.end), first);
            if moves_opening {
                self.blank(opening, opening + 1);
            }
        }
        self.visit_formal_parameters(&it.params);
        if let Some(types) = &it.return_type {
            let end = types.span.end;
            if moves_closing {
                self.blank(closing - 1, closing);
                self.blank(types.span.start, end);
                self.edits.replace(self.source, (end, end), ")");
            } else {
                self.blank(types.span.start, end);
            }
        }
        self.visit_arrow_function_body(&it.body);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        if it.declare {
            return self.blank_statement(it.span);
        }
        walk::walk_variable_declaration(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.blank_mark(it.id.span().end, '!');
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if it.declare {
            return self.blank_statement(it.span);
        }
        if it.r#abstract {
            let start = it.span.start;
            let text = &self.source[start as usize..it.body.span.start as usize];
            if let Some(at) = text.find("abstract") {
                let at = start + at as u32;
                self.blank(at, at + "abstract".len() as u32);
            }
        }
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last()) {
            let before = &self.source[it.span.start as usize..first.span.start as usize];
            let start =
                before.rfind("implements").map_or(first.span.start, |at| it.span.start + at as u32);
            self.blank(start, last.span.end);
        }
        self.visit_decorators(&it.decorators);
        if let Some(types) = &it.type_parameters {
            self.blank(types.span.start, types.span.end);
        }
        if let Some(heritage) = &it.heritage {
            self.visit_class_heritage(heritage);
        }
        self.visit_class_body(&it.body);
    }

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        if let ClassElement::TSIndexSignature(_) = it {
            return self.blank_statement(it.span());
        }
        walk::walk_class_element(self, it);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        if it.r#type == MethodDefinitionType::TSAbstractMethodDefinition || it.value.body.is_none()
        {
            return self.blank_statement(it.span);
        }
        self.blank_modifiers(it.span, it.key.span().start, &MODIFIERS);
        if it.optional {
            self.blank_mark(end_of_key(self.source, it.key.span(), it.computed), '?');
        }
        walk::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition {
            return self.blank_statement(it.span);
        }
        self.note_end(it.span);
        self.blank_modifiers(it.span, it.key.span().start, &MODIFIERS);
        let end = end_of_key(self.source, it.key.span(), it.computed);
        if it.optional {
            self.blank_mark(end, '?');
        }
        if it.definite {
            self.blank_mark(end, '!');
        }
        walk::walk_property_definition(self, it);
    }

    fn visit_accessor_property(&mut self, it: &AccessorProperty<'a>) {
        self.refuse(it.span, ACCESSOR);
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse(it.span, DECORATOR);
    }

    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        if it.import_kind.is_type() {
            return self.blank_statement(it.span);
        }
        let specifiers = it.specifiers.as_ref().map_or(&[][..], |list| list.as_slice());
        self.specifiers(specifiers, |specifier| match specifier {
            ImportDeclarationSpecifier::ImportSpecifier(named) => named.import_kind.is_type(),
            _ => false,
        });
    }

    fn visit_export_declaration(&mut self, it: &ExportDeclaration<'a>) {
        use oxc_ast::ast::Declaration as D;
        let is_type = match &it.declaration {
            D::TSTypeAliasDeclaration(_)
            | D::TSInterfaceDeclaration(_)
            | D::TSExternalModuleDeclaration(_)
            | D::TSGlobalDeclaration(_) => true,
            D::TSEnumDeclaration(it) => it.declare,
            D::TSNamespaceDeclaration(it) => it.declare || is_type_only(it),
            D::VariableDeclaration(it) => it.declare,
            D::FunctionDeclaration(it) => it.declare || it.body.is_none(),
            D::ClassDeclaration(it) => it.declare,
            D::TSImportEqualsDeclaration(_) => false,
        };
        if is_type {
            return self.blank_statement(it.span);
        }
        walk::walk_export_declaration(self, it);
    }

    fn visit_export_named_declaration(&mut self, it: &ExportNamedDeclaration<'a>) {
        if it.export_kind.is_type() {
            return self.blank_statement(it.span);
        }
        self.specifiers(&it.specifiers, |specifier| specifier.export_kind.is_type());
    }

    fn visit_export_from_declaration(&mut self, it: &ExportFromDeclaration<'a>) {
        if it.export_kind.is_type() {
            return self.blank_statement(it.span);
        }
        self.specifiers(&it.specifiers, |specifier| specifier.export_kind.is_type());
    }

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        if it.export_kind.is_type() {
            self.blank_statement(it.span);
        }
    }

    fn visit_export_default_declaration(&mut self, it: &ExportDefaultDeclaration<'a>) {
        let is_type = match &it.declaration {
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
            ExportDefaultDeclarationKind::FunctionDeclaration(it) => it.body.is_none(),
            _ => false,
        };
        if is_type {
            return self.blank_statement(it.span);
        }
        walk::walk_export_default_declaration(self, it);
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.blank_end(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.blank(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.blank(it.span.start, it.span.end);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.blank_end(it.expression.span().end, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.blank_end(it.expression.span().end, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.blank(it.expression.span().end, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_instantiation_expression(&mut self, it: &TSInstantiationExpression<'a>) {
        self.blank_end(it.expression.span().end, it.span.end);
        self.visit_expression(&it.expression);
    }

    /// Markup is generated from the whole tag, so its type arguments need no edit of their own.
    fn visit_jsx_opening_element(&mut self, it: &JSXOpeningElement<'a>) {
        self.visit_jsx_attribute_items(&it.attributes);
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        if it.declare {
            return self.blank_statement(it.span);
        }
        self.refuse(Span::new(it.span.start, it.id.span.end), ENUM);
    }

    fn visit_ts_namespace_declaration(&mut self, it: &TSNamespaceDeclaration<'a>) {
        if it.declare || is_type_only(it) {
            return self.blank_statement(it.span);
        }
        self.refuse(Span::new(it.span.start, it.id.span.end), NAMESPACE);
    }

    fn visit_ts_import_equals_declaration(&mut self, it: &TSImportEqualsDeclaration<'a>) {
        self.refuse(it.span, IMPORT_EQUALS);
    }

    fn visit_ts_export_assignment(&mut self, it: &TSExportAssignment<'a>) {
        self.refuse(it.span, EXPORT_EQUALS);
    }

    fn visit_ts_namespace_export_declaration(&mut self, it: &TSNamespaceExportDeclaration<'a>) {
        self.refuse(it.span, EXPORT_NAMESPACE);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.refuse(Span::new(it.span.start, it.expression.span().start), ASSERTION);
        self.visit_expression(&it.expression);
    }
}

/// The end of the name of a class member, with its bracket if it is computed.
fn end_of_key(source: &str, key: Span, is_computed: bool) -> u32 {
    if !is_computed {
        return key.end;
    }
    let rest = &source[key.end as usize..];
    let skipped = skip_trivia(rest);
    let bracket = usize::from(rest[skipped..].starts_with(']'));
    key.end + (skipped + bracket) as u32
}

/// Whether a namespace contains only types.
fn is_type_only(namespace: &TSNamespaceDeclaration<'_>) -> bool {
    use oxc_ast::ast::{Declaration as D, TSNamespaceDeclarationBody as Body};
    let Body::TSModuleBlock(block) = &namespace.body else { return false };
    block.body.iter().all(|statement| match statement {
        Statement::TSTypeAliasDeclaration(_) | Statement::TSInterfaceDeclaration(_) => true,
        Statement::ExportDeclaration(export) => matches!(
            export.declaration,
            D::TSTypeAliasDeclaration(_) | D::TSInterfaceDeclaration(_)
        ),
        _ => false,
    })
}
