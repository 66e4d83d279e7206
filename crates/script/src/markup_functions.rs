//! The functions of scripts that build markup from templates.

use std::rc::Rc;

use rquickjs::{Ctx, Exception, Value};

use crate::captured::{captured_json, places};
use crate::host_error::HostError;
use crate::markup::{text_of, trusted};
use crate::quickjs::{self, Arguments, Callback, Kind, Property, Thrown};
use crate::state::State;
use crate::template::{Hole, KEPT_BUFFER, MAX_BYTES, MAX_TEMPLATES, Template, Values};

/// The function `$markup(pieces, holes)` of scripts: a new template.
pub(crate) struct NewTemplate {
    pub(crate) state: Rc<State>,
}

/// The function `$html(template, ...values)` of scripts: markup from a template.
pub(crate) struct FillTemplate {
    pub(crate) state: Rc<State>,
}

/// The function `raw(text)` of scripts: trusted text as markup.
pub(crate) struct TrustedMarkup {
    pub(crate) state: Rc<State>,
}

/// The function `$captured(values, places)` of scripts: the JSON of values that a handler captures.
pub(crate) struct CapturedValues {
    pub(crate) state: Rc<State>,
}

/// `toString` of markup.
pub(crate) struct MarkupText {
    pub(crate) state: Rc<State>,
}

impl Callback for FillTemplate {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let ctx = arguments.ctx();
        let templates = &self.state.templates;
        let index = arguments.at(0).as_int().and_then(|index| usize::try_from(index).ok());
        let template = index.and_then(|index| templates.list.borrow().get(index).cloned());
        let Some(template) = template else {
            Exception::throw_type(ctx, "the first argument is no template");
            return Err(Thrown);
        };
        let mut out = templates.buffer.take();
        let values = Values { arguments, holes: self.state.holes() };
        let result = match template.write(&values, &mut out) {
            Ok(()) => self.state.classes().markup.create(ctx, &out),
            Err(refused) => Err(refused.throw(ctx)),
        };
        if out.capacity() <= KEPT_BUFFER {
            out.clear();
            templates.buffer.set(out);
        }
        result
    }
}

impl Callback for NewTemplate {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let (ctx, state) = (arguments.ctx(), &self.state);
        let refuse = |message: &str| state.throw(ctx, &HostError::Type(message.to_owned()));
        let (Some(pieces), Some(kinds)) = (texts(&arguments.at(0)), texts(&arguments.at(1))) else {
            return Err(refuse("a template has an array of pieces and an array of holes"));
        };
        if pieces.len() != kinds.len() + 1 {
            return Err(refuse("a template has one more piece than holes"));
        }
        let holes: Option<Vec<_>> = kinds.iter().map(|kind| Hole::parse(kind)).collect();
        let Some(holes) = holes else {
            return Err(refuse("a hole of a template has an unknown kind"));
        };
        let bytes = pieces.iter().map(String::len).sum::<usize>() + 64 * pieces.len();
        let templates = &state.templates;
        let sum = templates.bytes.get().saturating_add(bytes);
        let mut list = templates.list.borrow_mut();
        if list.len() >= MAX_TEMPLATES || sum > MAX_BYTES {
            return Err(state.throw(ctx, &HostError::Range("too many templates".to_owned())));
        }
        let mut pieces = pieces.into_iter();
        let first = pieces.next().unwrap_or_default();
        list.push(Rc::new(Template { first, holes: holes.into_iter().zip(pieces).collect() }));
        templates.bytes.set(sum);
        Ok(Value::new_number(ctx.clone(), (list.len() - 1) as f64))
    }
}

/// The elements of an array of texts.
fn texts(array: &Value<'_>) -> Option<Vec<String>> {
    if quickjs::kind(array) != Kind::Array {
        return None;
    }
    let length = u32::try_from(quickjs::length(array).ok()?).ok()?;
    let element = |index| match quickjs::element(array, index) {
        Ok(Property::Value(element)) => quickjs::with_text(&element, str::to_owned),
        _ => None,
    };
    (0..length).map(element).collect()
}

impl Callback for TrustedMarkup {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let ctx = arguments.ctx();
        let markup = self.state.classes().markup;
        let text = quickjs::with_text(&arguments.at(0), str::to_owned);
        let Some(text) = text else {
            let message = "raw() takes a string".to_owned();
            return Err(self.state.throw(ctx, &HostError::Type(message)));
        };
        markup.create(ctx, &trusted(&text))
    }
}

impl Callback for CapturedValues {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let (ctx, state) = (arguments.ctx(), &self.state);
        let refuse = |message: String| state.throw(ctx, &HostError::Type(message));
        let text = quickjs::with_text(&arguments.at(1), str::to_owned).unwrap_or_default();
        let places = places(&text);
        let (Some(places), Some(captures)) = (places, state.holes().captures) else {
            return Err(refuse("the places of captured values are not understood".to_owned()));
        };
        let json = captured_json(&arguments.at(0), &places, captures).map_err(refuse)?;
        let json = rquickjs::String::from_str(ctx.clone(), &json).map_err(|_| Thrown)?;
        Ok(json.into_value())
    }
}

impl Callback for MarkupText {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let ctx: &Ctx<'js> = arguments.ctx();
        let value = arguments.at(0);
        let text = text_of(self.state.classes().markup.read(&value).unwrap_or_default());
        let text = rquickjs::String::from_str(ctx.clone(), &text).map_err(|_| Thrown)?;
        Ok(text.into_value())
    }
}
