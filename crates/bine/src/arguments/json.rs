//! JSON in request and response bodies.

use std::ops::Deref;

use bine_http::{Finished, Status};
use bine_server as server;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{FromRequest, MOST_BODY, Needs, Rejection, RequestParts};
use crate::respond::{Respond, Response, ResponseWriter};
use crate::visitor_message::VisitorMessage;

/// JSON: the request body as an argument, the response body as a return value.
///
/// A body has at most 1 MiB and 128 levels of nesting. If it does not match the type, the server
/// answers 400 with the line and column of the error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Json<T>(pub T);

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: DeserializeOwned> FromRequest for Json<T> {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        if matches!(request.incoming.body, server::Body::None) {
            return Err(Rejection::invalid(name, VisitorMessage::NoBody {}));
        }
        let bytes = request.body(name)?;
        let kind = request.incoming.head.field_text("content-type").unwrap_or_default();
        if !is_json(kind) {
            // A foreign site's form can send text without a CORS preflight, but not this type.
            return Err(Rejection::invalid(name, VisitorMessage::JsonType {}));
        }
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            Rejection::invalid(name, VisitorMessage::Json { reason: error.to_string() })
        })
    }

    fn needs(needs: &mut Needs) {
        needs.body(MOST_BODY);
    }
}

/// Accepts `application/json` and types with the suffix of RFC 6839.
pub(crate) fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let Some((family, name)) = kind.split_once('/') else { return false };
    let suffix = name.rsplit_once('+').map_or(name, |(_, suffix)| suffix);
    family.eq_ignore_ascii_case("application") && suffix.eq_ignore_ascii_case("json")
}

impl<T: Serialize> Respond for Json<T> {
    fn respond(self, to: &mut ResponseWriter<'_, '_>) -> Finished {
        match serde_json::to_vec(&self.0) {
            Ok(bytes) => Response::bytes("application/json", bytes).respond(to),
            Err(error) => {
                let error = crate::Error::from(error);
                to.refuse(Status::INTERNAL_SERVER_ERROR, &error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn recognizes_json_media_types() {
        for kind in ["application/json", "Application/JSON; charset=utf-8", "application/ld+json"] {
            assert!(is_json(kind), "{kind}");
        }
        for kind in ["", "text/plain", "text/json", "application/jsonp", "x+json"] {
            assert!(!is_json(kind), "{kind}");
        }
    }
}
