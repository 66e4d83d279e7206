//! URLs and queries, as the URL Standard defines them.

use rquickjs::{Object, Value};
use url::{Url, form_urlencoded, quirks};

use super::{NativeError, new_text, text};
use crate::quickjs::{self, Arguments, Kind, Property};
use crate::state::State;

/// `parseUrl(text, base)`: the parts; `null` if the URL is invalid.
pub(super) fn parse<'js>(
    _: &State,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, NativeError> {
    let given = text(arguments, 0)?;
    let parsed = if quickjs::kind(&arguments.at(1)) == Kind::Text {
        Url::parse(&text(arguments, 1)?).and_then(|base| base.join(&given))
    } else {
        Url::parse(&given)
    };
    parts(arguments, parsed.ok().as_ref())
}

/// `setUrl(href, name, value)`: the parts after a change of one; `null` if it is rejected.
pub(super) fn set<'js>(
    _: &State,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, NativeError> {
    let Ok(mut url) = Url::parse(&text(arguments, 0)?) else { return parts(arguments, None) };
    let value = text(arguments, 2)?;
    let result = match text(arguments, 1)?.as_str() {
        "href" => quirks::set_href(&mut url, &value).map_err(drop),
        "protocol" => quirks::set_protocol(&mut url, &value),
        "username" => quirks::set_username(&mut url, &value),
        "password" => quirks::set_password(&mut url, &value),
        "host" => quirks::set_host(&mut url, &value),
        "hostname" => quirks::set_hostname(&mut url, &value),
        "port" => quirks::set_port(&mut url, &value),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            Ok(())
        }
        _ => Err(()),
    };
    parts(arguments, result.is_ok().then_some(&url))
}

fn parts<'js>(
    arguments: &Arguments<'_, 'js>,
    url: Option<&Url>,
) -> Result<Value<'js>, NativeError> {
    let ctx = arguments.ctx();
    let Some(url) = url else { return Ok(Value::new_null(ctx.clone())) };
    let object = Object::new(ctx.clone()).map_err(|_| NativeError::Thrown)?;
    let origin = quirks::origin(url);
    for (name, value) in [
        ("href", quirks::href(url)),
        ("origin", origin.as_str()),
        ("protocol", quirks::protocol(url)),
        ("username", quirks::username(url)),
        ("password", quirks::password(url)),
        ("host", quirks::host(url)),
        ("hostname", quirks::hostname(url)),
        ("port", quirks::port(url)),
        ("pathname", quirks::pathname(url)),
        ("search", quirks::search(url)),
        ("hash", quirks::hash(url)),
    ] {
        quickjs::define(object.as_value(), name, &new_text(ctx, value)?)?;
    }
    Ok(object.into_value())
}

/// `query(text)`: pairs of names and values. `query(pairs)`: text.
pub(super) fn query<'js>(
    _: &State,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, NativeError> {
    let ctx = arguments.ctx();
    let given = arguments.at(0);
    if quickjs::kind(&given) == Kind::Array {
        let mut out = form_urlencoded::Serializer::new(String::new());
        for pair in elements(&given)? {
            let texts: Option<Vec<String>> = elements(&pair)?
                .iter()
                .map(|text| quickjs::with_text(text, str::to_owned))
                .collect();
            let Some([name, value]) = texts.as_deref() else {
                return Err(NativeError::type_error("a pair is expected"));
            };
            out.append_pair(name, value);
        }
        return new_text(ctx, &out.finish());
    }
    let mut pairs = Vec::new();
    let given = text(arguments, 0)?;
    for (name, value) in form_urlencoded::parse(given.as_bytes()) {
        let pair = vec![new_text(ctx, &name)?, new_text(ctx, &value)?];
        pairs.push(quickjs::new_array(ctx, pair)?);
    }
    Ok(quickjs::new_array(ctx, pairs)?)
}

fn elements<'js>(array: &Value<'js>) -> Result<Vec<Value<'js>>, NativeError> {
    let length = u32::try_from(quickjs::length(array)?).unwrap_or(u32::MAX);
    let element = |index| match quickjs::element(array, index)? {
        Property::Value(value) => Ok(value),
        _ => Err(NativeError::type_error("an array is expected")),
    };
    (0..length).map(element).collect()
}
