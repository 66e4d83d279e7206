//! Decides how bytes that were compiled into the program are served: as a file would be.

use std::rc::Rc;
use std::sync::Arc;

use bine_server::{Answer, Bench, Clock, Incoming, Outgoing};

use crate::app_state::AppState;
use crate::methods::Methods;
use crate::respond::{Asked, Response};
use crate::route::{Caller, Kind, LocalCaller, Place, Route, Told};

struct Asset {
    media_type: &'static str,
    bytes: &'static [u8],
}

struct LocalAsset {
    asset: Arc<Asset>,
    clock: Rc<Clock>,
    app: Arc<AppState>,
}

/// A route that answers with `bytes`.
pub(crate) fn route(path: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Route {
    let asset = Shared(Arc::new(Asset { media_type, bytes }));
    Route::new(Methods::GET, path, path, asset).told(Told { kind: Kind::Asset, ..Told::default() })
}

struct Shared(Arc<Asset>);

impl Caller for Shared {
    fn local(&self, bench: &Bench, place: &Place) -> Box<dyn LocalCaller> {
        Box::new(LocalAsset {
            asset: Arc::clone(&self.0),
            clock: Rc::clone(&bench.clock),
            app: Arc::clone(&place.app),
        })
    }
}

impl LocalCaller for LocalAsset {
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let response = Response::bytes(self.asset.media_type, self.asset.bytes);
        response.answer(Asked::by(incoming), &self.clock, &self.app.look, out)
    }
}
