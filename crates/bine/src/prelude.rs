//! Decides which names nearly every program needs: `use bine::prelude::*;`.

pub use crate::{
    App, Content, Cookie, Dress, Error, Exit, Failure, Flow, Form, Frozen, Header, Html, Json,
    Page, Parts, Path, Phrasing, Query, Request, Respond, Response, Show, State, Status, Text,
    Tree, Upload, html, page, raw, tree,
};
