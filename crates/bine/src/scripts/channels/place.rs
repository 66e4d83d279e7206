//! The names of an application's channels in the program.

use std::sync::Arc;

use crate::scripts::app_settings::AppAccess;
use crate::scripts::folders::AppFolder;

/// Where the channels of an application are among those of the program.
#[derive(Clone, Debug)]
pub(in crate::scripts) struct ChannelPlace {
    /// The first segment of their names, which no other application has.
    pub(super) segment: String,
    /// The permitted users of the application.
    pub(super) access: AppAccess,
    /// Why the application can have no channels.
    pub(super) conflict: Option<Arc<str>>,
}

impl ChannelPlace {
    /// The place for the channels of an application. `conflict`: why it can have none.
    pub(in crate::scripts) fn new(app: &AppFolder, conflict: Option<Arc<str>>) -> Self {
        Self { segment: segment_of(app), access: app.settings.access.clone(), conflict }
    }
}

/// The first segment of the names of an application's channels: its own name, or its path. The
/// names of its tables begin with it too.
pub(in crate::scripts) fn segment_of(app: &AppFolder) -> String {
    match (&app.settings.name, app.path.as_str()) {
        (Some(name), _) => name.clone(),
        (None, "") => "site".to_owned(),
        (None, path) => path.replace('/', "."),
    }
}
