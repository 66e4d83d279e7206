//! The names that nearly every program needs: `use bine::prelude::*;`.

pub use crate::channels::Channels;
pub use crate::store::{Id, Store, Table, Time};
pub use crate::{
    App, Call, Caller, Class, Cookie, Error, ErrorInfo, Events, Exit, Flow, Form, Frame, Frozen,
    Header, Html, Json, Page, PageContent, PageExt, Parts, Path, Phrasing, Presence, Query,
    Replace, Request, Respond, Response, Session, Show, Signal, State, Status, Text, Tree, Upgrade,
    Upload, User, action, asset, browser_file, button_list, css, css_file, html, layout, page, raw,
    service, time, tree,
};
