//! The shapes of arguments, derived from type annotations of the same file.

use std::collections::HashMap;

use oxc_ast::ast::{
    Declaration, Program, PropertyKey, Statement, TSInterfaceDeclaration, TSLiteral, TSSignature,
    TSType, TSTypeAliasDeclaration, TSTypeName, TSTypeOperatorOperator, TSTypeReference,
    UnaryOperator,
};
use oxc_span::{GetSpan, Span};

use crate::diagnostic::Fault;
use crate::scan::Imports;

/// The maximum nesting of a shape, which bounds the recursion of its readers.
const MAX_DEPTH: usize = 32;

/// The maximum number of parts of a shape. Aliases of aliases could grow without it.
const MAX_PARTS: usize = 1000;

/// Names that a field must not have, because they reach the prototype of an object.
const FORBIDDEN: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// The required kind of a JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Any string.
    String,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of these constants.
    OneOf(Vec<Literal>),
    /// A list whose items have one shape.
    Array(Box<Shape>),
    /// An object with exactly these fields.
    Object(Vec<Field>),
    /// A file of a form: the type `Upload` of `bine`. Only a field of an argument itself, or an item of
    /// a list that is such a field, has this shape.
    Upload,
    /// A value that this server has sealed: the type `Sealed` of `bine`. Only a field of an argument itself
    /// has this shape.
    Sealed(Box<Shape>),
}

/// A constant in a union.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A string.
    String(String),
    /// A number.
    Number(f64),
    /// `true` or `false`.
    Boolean(bool),
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name.
    pub name: String,
    /// Whether the field may be absent.
    pub is_optional: bool,
    /// The shape of the value.
    pub shape: Shape,
}

/// The types that a module declares at its top level.
pub(crate) struct Types<'p, 'a> {
    types: HashMap<&'p str, Declared<'p, 'a>>,
    imports: &'p Imports,
}

#[derive(Clone, Copy)]
enum Declared<'p, 'a> {
    Alias(&'p TSTypeAliasDeclaration<'a>),
    Interface(&'p TSInterfaceDeclaration<'a>),
    /// Declared more than once.
    Merged,
}

impl<'p, 'a> Types<'p, 'a> {
    pub(crate) fn of(program: &'p Program<'a>, imports: &'p Imports) -> Self {
        let mut types = Self { types: HashMap::new(), imports };
        for statement in &program.body {
            match statement {
                Statement::TSTypeAliasDeclaration(alias) => types.alias(alias),
                Statement::TSInterfaceDeclaration(interface) => types.interface(interface),
                Statement::ExportDeclaration(export) => match &export.declaration {
                    Declaration::TSTypeAliasDeclaration(alias) => types.alias(alias),
                    Declaration::TSInterfaceDeclaration(interface) => types.interface(interface),
                    _ => {}
                },
                _ => {}
            }
        }
        types
    }

    fn alias(&mut self, alias: &'p TSTypeAliasDeclaration<'a>) {
        self.add(&alias.id.name, Declared::Alias(alias));
    }

    fn interface(&mut self, interface: &'p TSInterfaceDeclaration<'a>) {
        self.add(&interface.id.name, Declared::Interface(interface));
    }

    fn add(&mut self, name: &'p str, declared: Declared<'p, 'a>) {
        let entry = self.types.entry(name);
        entry.and_modify(|entry| *entry = Declared::Merged).or_insert(declared);
    }

    /// The shape of the type of an argument.
    pub(crate) fn shape(&self, annotation: &TSType<'a>) -> Result<Shape, Fault> {
        let shape =
            Reader { types: self, open: Vec::new(), depth: 0, parts: 0 }.shape(annotation)?;
        let fields = if let Shape::Object(fields) = &shape { &fields[..] } else { &[] };
        let is_deep = |field: &Field| match &field.shape {
            Shape::Upload => false,
            Shape::Array(item) if **item == Shape::Upload => false,
            other => has_upload(other),
        };
        if fields.iter().any(is_deep) {
            let message = "a form has a file under the name of an argument: write `picture: Upload` or \
                           `pictures: Upload[]` in the object of the arguments itself";
            return Err(Fault::new(annotation.span(), message));
        }
        let is_deep = |field: &Field| match &field.shape {
            Shape::Sealed(value) => has_sealed(value),
            other => has_sealed(other),
        };
        if fields.iter().any(is_deep) {
            let message = "a value is sealed for an argument: write `id: Sealed<string>` in the object of the \
                           arguments itself";
            return Err(Fault::new(annotation.span(), message));
        }
        Ok(shape)
    }
}

/// Whether a shape has a sealed value in it.
fn has_sealed(shape: &Shape) -> bool {
    match shape {
        Shape::Sealed(_) => true,
        Shape::Array(item) => has_sealed(item),
        Shape::Object(fields) => fields.iter().any(|field| has_sealed(&field.shape)),
        _ => false,
    }
}

/// Whether a shape has a file in it.
fn has_upload(shape: &Shape) -> bool {
    match shape {
        Shape::Upload => true,
        Shape::Array(item) | Shape::Sealed(item) => has_upload(item),
        Shape::Object(fields) => fields.iter().any(|field| has_upload(&field.shape)),
        _ => false,
    }
}

struct Reader<'r, 'p, 'a> {
    types: &'r Types<'p, 'a>,
    /// The declared types that are being read.
    open: Vec<String>,
    depth: usize,
    parts: usize,
}

impl<'a> Reader<'_, '_, 'a> {
    fn shape(&mut self, annotation: &TSType<'a>) -> Result<Shape, Fault> {
        self.parts += 1;
        if self.depth >= MAX_DEPTH || self.parts > MAX_PARTS {
            let message = format!(
                "this type is too large for an argument: at most {MAX_DEPTH} levels and {MAX_PARTS} parts"
            );
            return Err(Fault::new(annotation.span(), message));
        }
        self.depth += 1;
        let shape = self.inner(annotation);
        self.depth -= 1;
        shape
    }

    fn inner(&mut self, annotation: &TSType<'a>) -> Result<Shape, Fault> {
        match annotation {
            TSType::TSStringKeyword(_) => Ok(Shape::String),
            TSType::TSNumberKeyword(_) => Ok(Shape::Number),
            TSType::TSBooleanKeyword(_) => Ok(Shape::Boolean),
            TSType::TSLiteralType(_) => Ok(Shape::OneOf(vec![literal(annotation)?])),
            TSType::TSParenthesizedType(inner) => self.shape(&inner.type_annotation),
            TSType::TSArrayType(array) => {
                Ok(Shape::Array(Box::new(self.shape(&array.element_type)?)))
            }
            TSType::TSTypeOperatorType(operator)
                if operator.operator == TSTypeOperatorOperator::Readonly =>
            {
                self.shape(&operator.type_annotation)
            }
            TSType::TSTypeLiteral(object) => self.object(&object.members),
            TSType::TSUnionType(union) => {
                let mut literals = Vec::new();
                for one in &union.types {
                    match self.shape(one)? {
                        Shape::OneOf(more) => literals.extend(more),
                        _ => return Err(unsupported(one, "a union of literals only")),
                    }
                }
                Ok(Shape::OneOf(literals))
            }
            TSType::TSTypeReference(reference) => self.reference(annotation, reference),
            _ => Err(unsupported(annotation, "this type")),
        }
    }

    fn reference(
        &mut self,
        annotation: &TSType<'a>,
        reference: &TSTypeReference<'a>,
    ) -> Result<Shape, Fault> {
        let TSTypeName::IdentifierReference(name) = &reference.type_name else {
            return Err(unsupported(annotation, "a qualified name"));
        };
        let name = name.name.as_str();
        let arguments = reference.type_arguments.as_ref().map(|given| given.params.as_slice());
        let declared = self.types.types.get(name).copied();
        match (declared, arguments) {
            (None, Some([item])) if ["Array", "ReadonlyArray"].contains(&name) => {
                Ok(Shape::Array(Box::new(self.shape(item)?)))
            }
            (None, None) if self.types.imports.word(name) == Some("Upload") => Ok(Shape::Upload),
            (None, Some([value])) if self.types.imports.word(name) == Some("Sealed") => {
                Ok(Shape::Sealed(Box::new(self.shape(value)?)))
            }
            (None, None) if ["File", "Blob", "Upload"].contains(&name) => {
                let message = format!(
                    "the type of a file in a form is `Upload` of \"bine\", not `{name}`: `import {{ type Upload }} from \"bine\"`"
                );
                Err(Fault::new(annotation.span(), message))
            }
            (None, _) => Err(unsupported(annotation, "a type from elsewhere")),
            (Some(Declared::Merged), _) => {
                Err(unsupported(annotation, "a type that is declared more than once"))
            }
            (Some(_), Some(_)) => Err(unsupported(annotation, "a generic type")),
            (Some(_), None) if self.open.iter().any(|open| open == name) => {
                Err(unsupported(annotation, "a type that contains itself"))
            }
            (Some(Declared::Alias(alias)), None) => {
                if alias.type_parameters.is_some() {
                    return Err(unsupported(annotation, "a generic type"));
                }
                self.within(name, |this| this.shape(&alias.type_annotation))
            }
            (Some(Declared::Interface(interface)), None) => {
                if interface.type_parameters.is_some() || !interface.extends.is_empty() {
                    let message = "a generic interface or one that extends another";
                    return Err(unsupported(annotation, message));
                }
                self.within(name, |this| this.object(&interface.body.body))
            }
        }
    }

    fn within(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self) -> Result<Shape, Fault>,
    ) -> Result<Shape, Fault> {
        self.open.push(name.to_owned());
        let shape = read(self);
        self.open.pop();
        shape
    }

    fn object(&mut self, members: &[TSSignature<'a>]) -> Result<Shape, Fault> {
        let mut fields: Vec<Field> = Vec::new();
        for member in members {
            let TSSignature::TSPropertySignature(property) = member else {
                return Err(no_field(member.span()));
            };
            let (name, annotation) = match (&property.key, &property.type_annotation) {
                _ if property.computed => return Err(no_field(property.span)),
                (PropertyKey::StaticIdentifier(name), Some(annotation)) => {
                    (name.name.to_string(), annotation)
                }
                (PropertyKey::StringLiteral(name), Some(annotation)) => {
                    (name.value.to_string(), annotation)
                }
                _ => return Err(no_field(property.span)),
            };
            if FORBIDDEN.contains(&&*name) {
                let message =
                    format!("an argument cannot have the field `{name}`: choose another name");
                return Err(Fault::new(property.key.span(), message));
            }
            if fields.iter().any(|field| field.name == name) {
                let message = format!("the field `{name}` is declared twice");
                return Err(Fault::new(property.key.span(), message));
            }
            let (shape, may_be_undefined) = self.optional(&annotation.type_annotation)?;
            let is_optional = property.optional || may_be_undefined;
            fields.push(Field { name, is_optional, shape });
        }
        Ok(Shape::Object(fields))
    }

    /// The shape of a field, and whether the type includes `undefined`.
    fn optional(&mut self, annotation: &TSType<'a>) -> Result<(Shape, bool), Fault> {
        let TSType::TSUnionType(union) = annotation else {
            return Ok((self.shape(annotation)?, false));
        };
        let is_undefined = |one: &&TSType<'a>| matches!(one, TSType::TSUndefinedKeyword(_));
        let rest: Vec<&TSType<'a>> = union.types.iter().filter(|one| !is_undefined(one)).collect();
        match rest.as_slice() {
            _ if rest.len() == union.types.len() => Ok((self.shape(annotation)?, false)),
            [] => Err(unsupported(annotation, "this type")),
            [one] => Ok((self.shape(one)?, true)),
            several => {
                let mut literals = Vec::new();
                for one in several {
                    match self.shape(one)? {
                        Shape::OneOf(more) => literals.extend(more),
                        _ => return Err(unsupported(one, "a union of literals only")),
                    }
                }
                Ok((Shape::OneOf(literals), true))
            }
        }
    }
}

fn literal(annotation: &TSType<'_>) -> Result<Literal, Fault> {
    let TSType::TSLiteralType(literal) = annotation else {
        return Err(unsupported(annotation, "this type"));
    };
    match &literal.literal {
        TSLiteral::StringLiteral(text) => Ok(Literal::String(text.value.to_string())),
        TSLiteral::NumericLiteral(number) => Ok(Literal::Number(number.value)),
        TSLiteral::BooleanLiteral(literal) => Ok(Literal::Boolean(literal.value)),
        TSLiteral::UnaryExpression(unary) => match (&unary.operator, &unary.argument) {
            (UnaryOperator::UnaryNegation, oxc_ast::ast::Expression::NumericLiteral(number)) => {
                Ok(Literal::Number(-number.value))
            }
            _ => Err(unsupported(annotation, "this literal")),
        },
        _ => Err(unsupported(annotation, "this literal")),
    }
}

const SUPPORTED: &str = "write an explicit shape of `string`, `number`, `boolean`, unions of literals, \
                         arrays, objects with optional fields, and types that this file declares";

fn unsupported(annotation: &TSType<'_>, what: &str) -> Fault {
    let message = if what.starts_with("a union") {
        format!("the server checks {what} in an argument: {SUPPORTED}")
    } else {
        format!("the server cannot check {what} in an argument: {SUPPORTED}")
    };
    Fault::new(annotation.span(), message)
}

fn no_field(span: Span) -> Fault {
    let message = format!("this is no field with a type: {SUPPORTED}");
    Fault::new(span, message)
}
