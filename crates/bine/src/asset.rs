//! Decides how bytes that were compiled into the program are served: as a file would be.

use std::sync::Arc;

use bine_http::Method;
use bine_pipeline::{Answer, Bench, Clock, Incoming, Outgoing};

use crate::respond::Response;
use crate::route::{Caller, LocalCaller, Route};

struct Asset {
    media_type: &'static str,
    bytes: &'static [u8],
}

struct LocalAsset(Arc<Asset>, std::rc::Rc<Clock>);

/// A route that answers with `bytes`.
pub(crate) fn route(path: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Route {
    let caller = Shared(Arc::new(Asset { media_type, bytes }));
    Route { path, name: path, caller: Arc::new(caller) }
}

struct Shared(Arc<Asset>);

impl Caller for Shared {
    fn local(&self, bench: &Bench) -> Box<dyn LocalCaller> {
        Box::new(LocalAsset(Arc::clone(&self.0), std::rc::Rc::clone(&bench.clock)))
    }
}

impl LocalCaller for LocalAsset {
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let Self(asset, clock) = self;
        let response = match incoming.head.method() {
            Method::Get | Method::Head => Response::bytes(asset.media_type, asset.bytes),
            other => Response::only_read(other),
        };
        response.answer(incoming.exchange, clock, out)
    }
}
