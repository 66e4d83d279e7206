//! Serves bytes that are compiled into the program, as files are served.

use std::rc::Rc;
use std::sync::Arc;

use bine_server::{Answer, Clock, HandlerContext, Incoming, Outgoing};

use crate::app_state::AppState;
use crate::methods::Methods;
use crate::respond::{RequestSummary, Response};
use crate::route::{LocalHandler, Route, RouteContext, RouteHandler, RouteInfo, RouteKind};

struct Asset {
    media_type: &'static str,
    bytes: &'static [u8],
}

struct LocalAsset {
    asset: Arc<Asset>,
    clock: Rc<Clock>,
    app: Arc<AppState>,
}

/// Creates a route that serves `bytes`.
pub(crate) fn route(path: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Route {
    let asset = SharedAsset(Arc::new(Asset { media_type, bytes }));
    Route::new(Methods::GET, path, path, asset)
        .info(RouteInfo { kind: RouteKind::Asset, ..RouteInfo::default() })
}

struct SharedAsset(Arc<Asset>);

impl RouteHandler for SharedAsset {
    fn local(
        &self,
        handler_context: &HandlerContext,
        context: &RouteContext,
    ) -> Box<dyn LocalHandler> {
        Box::new(LocalAsset {
            asset: Arc::clone(&self.0),
            clock: Rc::clone(&handler_context.clock),
            app: Arc::clone(&context.app),
        })
    }
}

impl LocalHandler for LocalAsset {
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let response = Response::bytes(self.asset.media_type, self.asset.bytes);
        response.answer(RequestSummary::by(incoming), &self.clock, &self.app.templates, out)
    }
}
