//! An application as a part of the program with its own channels: a request of a client at
//! `/channels` loads the application if the rules for its channels are not known yet.

use std::sync::Arc;

use bine_server::Incoming;

use super::application::Application;
use super::channels::segment_of;
use super::instance::local;
use crate::app_state::AppState;
use crate::channels::{ChannelScope, ScopeLoad, ScopeRules};
use crate::service::Caller;

/// The rules for the channels of an application.
pub(super) struct ApplicationScope(pub(super) Arc<Application>);

impl ChannelScope for ApplicationScope {
    fn has(&self, channel: &str) -> bool {
        let Some((first, _)) = channel.split_once('/') else { return false };
        segment_of(&self.0.listing(None).app) == first
    }

    fn rules(&self) -> Option<Arc<ScopeRules>> {
        self.0.channel_rules()
    }

    fn load(&self, request: &Incoming<'_>, app: &Arc<AppState>) -> ScopeLoad {
        let (own, caller) = (Arc::clone(&self.0), Caller::of_page(request, app));
        Box::pin(async move {
            own.listing(None).rule.admit_caller(&caller)?;
            local(&own, &caller).await.map(drop)
        })
    }
}
