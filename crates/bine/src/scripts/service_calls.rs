//! Checks the calls of services in Rust that an application contains, before it runs: the names and the
//! kinds of their arguments.

use bine_tsx::{CallArgument, LiteralKind, ServiceCall};

use crate::nearest::nearest;
use crate::service::in_process::{NamedService, ServiceDirectory};
use crate::service::type_shape::TypeShape;
use crate::text::shortened;

/// The first mistake in a call: its place and the correction. `None`: the call may be right.
pub(super) fn mistake(
    call: &ServiceCall,
    services: Option<&ServiceDirectory>,
) -> Option<(bine_tsx::Position, String)> {
    let service = match services.map(|all| all.named(&call.service)) {
        Some(Ok(service)) => service,
        // The import of a name has its own message, but `import * as` does not.
        Some(Err(reason)) => return Some((call.position, reason)),
        None => return None,
    };
    let given = call.arguments.as_ref()?;
    let names = service.arguments.iter().map(|(name, _)| plain(name));
    for argument in &given.named {
        let place = names.clone().position(|name| name == argument.name);
        let reason = match place {
            Some(place) => wrong_kind(service, place, argument),
            None => Some(unknown(service, &argument.name)),
        };
        if let Some(reason) = reason {
            return Some((argument.position, reason));
        }
    }
    if given.is_open {
        return None;
    }
    let shapes = &service.shape().arguments;
    let mut required = names.zip(shapes).filter(|(_, shape)| !shape.may_be_absent);
    let (missing, _) =
        required.find(|(name, _)| !given.named.iter().any(|own| own.name == *name))?;
    let reason =
        format!("the call of `{}` has no argument `{missing}`: {}", call.service, takes(service));
    Some((call.position, reason))
}

/// The name of an argument in JSON.
fn plain(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}

/// A part of a sentence with the arguments of a service.
fn takes(service: &NamedService) -> String {
    let all = service.arguments.iter();
    let all: Vec<String> = all.map(|(name, kind)| format!("`{}: {kind}`", plain(name))).collect();
    if all.is_empty() {
        format!("{} takes no arguments", service.name)
    } else {
        format!("{} takes {}", service.name, all.join(", "))
    }
}

fn unknown(service: &NamedService, name: &str) -> String {
    let names = service.arguments.iter().map(|(name, _)| plain(name));
    let hint = nearest(names, name).map(|near| format!("; did you mean `{near}`?"));
    format!(
        "`{}` has no argument `{}`{}: {}",
        service.function(),
        shortened(name),
        hint.unwrap_or_default(),
        takes(service)
    )
}

fn wrong_kind(service: &NamedService, place: usize, argument: &CallArgument) -> Option<String> {
    let shape = &service.shape().arguments.get(place)?;
    if shape.may_be_absent && argument.value == LiteralKind::Null {
        return None;
    }
    if fits(&shape.shape, &argument.value) {
        return None;
    }
    let (name, kind) = service.arguments.get(place)?;
    let expected = match &shape.shape {
        TypeShape::Choice(variants) => {
            let words: Vec<String> = variants.iter().map(|own| format!("`{}`", own.word)).collect();
            format!("one of {}", words.join(", "))
        }
        _ => format!("a value for `{kind}`"),
    };
    Some(format!(
        "the argument `{}` of `{}` must be {expected}, not {}",
        plain(name),
        service.function(),
        described(&argument.value)
    ))
}

/// Whether a value that the source shows may have a shape.
fn fits(shape: &TypeShape, value: &LiteralKind) -> bool {
    use LiteralKind as Given;
    match (shape, value) {
        (_, Given::Function) => false,
        (TypeShape::Unknown, _)
        | (_, Given::Other)
        | (TypeShape::Optional(_) | TypeShape::Nothing, Given::Null)
        | (TypeShape::Boolean, Given::Boolean)
        | (TypeShape::Number | TypeShape::LargeInteger, Given::Number)
        | (TypeShape::LargeInteger | TypeShape::Text, Given::Text(_))
        | (TypeShape::List(_) | TypeShape::Tuple(_), Given::List)
        | (TypeShape::Map(_) | TypeShape::Record(_), Given::Object) => true,
        (TypeShape::Optional(inner), value) => fits(inner, value),
        (TypeShape::Choice(variants), Given::Text(Some(text))) => {
            variants.iter().any(|own| own.content.is_none() && own.word == text)
        }
        (TypeShape::Choice(variants), Given::Text(None)) => {
            variants.iter().any(|own| own.content.is_none())
        }
        (TypeShape::Choice(variants), Given::Object) => {
            variants.iter().any(|own| own.content.is_some())
        }
        _ => false,
    }
}

fn described(value: &LiteralKind) -> String {
    match value {
        LiteralKind::Text(Some(text)) => format!("the text `{}`", shortened(text)),
        LiteralKind::Text(None) => "a text".to_owned(),
        LiteralKind::Number => "a number".to_owned(),
        LiteralKind::Boolean => "`true` or `false`".to_owned(),
        LiteralKind::Null => "`null`".to_owned(),
        LiteralKind::List => "an array".to_owned(),
        LiteralKind::Object => "an object".to_owned(),
        LiteralKind::Function => "a function".to_owned(),
        LiteralKind::Other => "this value".to_owned(),
    }
}
