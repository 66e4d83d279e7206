//! The names that nearly every program needs: `use bine::prelude::*;`.

pub use crate::channels::Channels;
pub use crate::store::{Id, Store, Table, Time};
pub use crate::{
    App, Call, Caller, Class, Content, Cookie, Dress, Error, Events, Exit, Failure, Flow, Form,
    Frame, Frozen, Header, Here, Html, Json, Page, Parts, Path, Phrasing, Query, Replace, Request,
    Respond, Response, Session, Show, Signal, State, Status, Text, Tree, Upgrade, Upload, User,
    action, choose, css, css_file, html, page, raw, service, tree,
};
