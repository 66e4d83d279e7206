//! The page with the audit log.

use bine_http::Status;

use super::address::{Place, with_query};
use super::page::PageFrame;
use super::request::BrowserRequest;
use super::row_list::{created, navigation};
use crate::audit::AuditEntry;
use crate::respond::Response;
use crate::store::{Cursor, Table, Turn};

/// The entries of one page.
const PAGE: usize = 50;

/// The audit log, the newest entry first, of one actor or one object if the query names them.
pub(super) fn respond(request: &BrowserRequest<'_>) -> Result<Response, Response> {
    let [actor, object] = ["actor", "object"].map(|name| request.argument(name).trim());
    let invalid = |_| Response::error(Status::BAD_REQUEST, "The place in the log is invalid.");
    let cursor = |name: &str| -> Result<Option<Cursor>, Response> {
        let text = request.argument(name);
        (!text.is_empty()).then(|| text.parse()).transpose().map_err(invalid)
    };
    let turn = Turn::new(cursor("after")?, cursor("before")?);
    let snapshot = request.store.read().without_tracking();
    let mut entries = snapshot.select::<AuditEntry>().rev();
    if !actor.is_empty() {
        entries = entries.equals(AuditEntry::COLUMN_ACTOR, actor);
    }
    if !object.is_empty() {
        entries = entries.equals(AuditEntry::COLUMN_OBJECT, object);
    }
    let page = entries.page(&turn, PAGE).map_err(invalid)?;
    let address = Place::Audit.address();
    let link = |name, cursor: Option<Cursor>, label| {
        let cursor = cursor?.to_string();
        let pairs = [("actor", actor), ("object", object), (name, &*cursor)];
        Some((with_query(&address, &pairs), label))
    };
    let links = [
        link("before", page.previous, "\u{2190} Newer"),
        link("after", page.next, "Older \u{2192}"),
    ];
    let links = navigation(links.into_iter().flatten().collect());
    let only = |name, value: &str| with_query(&address, &[(name, value)]);
    let entries: Vec<_> = page
        .rows
        .into_iter()
        .map(|entry| {
            let (by_actor, by_object) =
                (only("actor", &entry.actor), only("object", &entry.object));
            let AuditEntry { actor, action, object, detail, .. } = entry.clone();
            let time = created(entry.id());
            crate::html! {
                <tr>
                    <td class="time">{time}</td>
                    <td><a href={by_actor}>{actor}</a></td>
                    <td>{action}</td>
                    <td><a href={by_object}>{object}</a></td>
                    <td class="detail">{detail}</td>
                </tr>
            }
        })
        .collect();
    let frame = PageFrame {
        viewer: request.viewer,
        title: "Audit log".to_owned(),
        trail: Vec::new(),
        status: Status::OK,
    };
    let is_empty = entries.is_empty();
    let is_filtered = !actor.is_empty() || !object.is_empty();
    let (actor, object) = (actor.to_owned(), object.to_owned());
    Ok(frame.response(crate::html! {
        <form class="search" action={address.clone()} method="get" role="search">
            <input type="search" name="actor" value={actor} placeholder="actor" aria-label="Actor">
            <input type="search" name="object" value={object} placeholder="object" aria-label="Object">
            <button>Filter</button>
            {if is_filtered { <a href={address}>All entries</a> }}
        </form>
        {if is_empty {
            <p class="note">"No entries."</p>
        } else {
            <div class="scroll tall">
                <table>
                    <thead><tr>
                        <th scope="col">Time</th><th scope="col">Actor</th><th scope="col">Action</th>
                        <th scope="col">Object</th><th scope="col">Detail</th>
                    </tr></thead>
                    <tbody>{entries}</tbody>
                </table>
            </div>
        }}
        {links}
    }))
}
