//! Writes a page after its head, or before it where rendering may still change the head.

use std::rc::Rc;

use bine_html::{Page, Writer};
use bine_http::{Body, Finished, Reply};
use bine_server::Outgoing;

use super::{HTML, ResponseHead, ResponseWriter, VARY, XHTML};
use crate::findings::log_once;
use crate::region_key::region_key;
use crate::render_context::RenderContext;
use crate::templates::{LayoutContext, PageSettings, Templates};
use crate::text::Text;
use crate::trace;

pub(super) fn write_page<P: Page>(
    page: P,
    top: &ResponseHead,
    settings: &PageSettings,
    to: &mut ResponseWriter<'_, '_>,
) -> Finished {
    // Inside a layout a frozen page is part of a page that is rendered per request.
    if let Some(frozen) = page.frozen()
        && (settings.has_no_layout || to.templates.has_no_template(&page))
    {
        let top = &*to.complete(top);
        return to.send_frozen(frozen, top);
    }
    let has_layout = !settings.has_no_layout && !to.templates.has_no_template(&page);
    let user = if has_layout { to.layout_user() } else { None };
    let shown = LayoutContext { settings, request: to.asked, user: user.as_ref() };
    if let Some(context) = to.context() {
        return write_with_actions(page, top, shown, to, &context);
    }
    let (templates, chunk_at, viewer_login) = (to.templates, to.chunk_at, to.viewer_login());
    let kind = PageKind::of(&page, settings, to);
    let mut body = to.begin_page(top, kind).body();
    let Outgoing { buffer, drain } = &mut *to.out;
    let mut spill = |buffer: &mut Vec<u8>| body.flush(buffer, |buffer| drain(buffer));
    let mut writer = Writer::with_spill(buffer, chunk_at, &mut spill);
    mark_regions(&mut writer, templates, settings, viewer_login);
    write_content(page, shown, templates, kind, &mut writer);
    drop(writer);
    body.finish(buffer)
}

/// Writes a page in a program with actions. An action may start a session, which adds a field to
/// the head. The head is therefore written when the page is complete, or when its first chunk is
/// sent.
fn write_with_actions<P: Page>(
    page: P,
    top: &ResponseHead,
    shown: LayoutContext<'_>,
    to: &mut ResponseWriter<'_, '_>,
    context: &Rc<RenderContext>,
) -> Finished {
    let (templates, chunk_at, viewer_login) = (to.templates, to.chunk_at, to.viewer_login());
    let kind = PageKind::of(&page, shown.settings, to);
    let (mut content, mut body) = (Vec::new(), None::<Body>);
    let mut spill = |content: &mut Vec<u8>| {
        let body = body.get_or_insert_with(|| {
            context.expect_anything();
            to.visitor_session = to.visitor_session.take().or_else(|| context.visitor());
            to.begin_page(top, kind).body()
        });
        let Outgoing { buffer, drain } = &mut *to.out;
        buffer.append(content);
        body.flush(buffer, |buffer| drain(buffer));
    };
    let mut writer = Writer::with_spill(&mut content, chunk_at, &mut spill);
    mark_regions(&mut writer, templates, shown.settings, viewer_login);
    context.during(|| write_content(page, shown, templates, kind, &mut writer));
    drop(writer);
    let body = body.unwrap_or_else(|| {
        to.visitor_session = to.visitor_session.take().or_else(|| context.visitor());
        to.begin_page(top, kind).body()
    });
    to.out.buffer.append(&mut content);
    body.finish(to.out.buffer)
}

/// Marks the regions of a page, for the login that it was rendered for, if any.
fn mark_regions(
    writer: &mut Writer<'_>,
    templates: &Templates,
    settings: &PageSettings,
    viewer_login: Option<u64>,
) {
    writer.mark_regions(region_key());
    if let Some(program) = templates.version {
        let version = program ^ settings.version.unwrap_or_default();
        writer.set_version(version);
        if let Some(trace) = trace::current() {
            trace.record_version(version);
        }
    }
    if let Some(login) = viewer_login {
        writer.set_viewer(login);
    }
}

fn write_content<'w, P: Page>(
    page: P,
    shown: LayoutContext<'_>,
    templates: &'w Templates,
    kind: PageKind,
    writer: &mut Writer<'w>,
) {
    writer.set_head(templates.head());
    if templates.shows_causes() {
        writer.inspect_with(log_once);
    }
    if kind.is_xml {
        writer.switch_to_xml();
    }
    if shown.settings.has_no_layout {
        page.write(writer);
    } else {
        templates.write(page, shown, writer);
    }
}

/// The format in which a page is written.
#[derive(Clone, Copy)]
struct PageKind {
    /// Whether the page is a whole document, so that XHTML is possible.
    is_document: bool,
    is_xml: bool,
}

impl PageKind {
    fn of(page: &impl Page, settings: &PageSettings, to: &ResponseWriter<'_, '_>) -> Self {
        let is_document = if settings.has_no_layout {
            page.is_this_document()
        } else {
            to.templates.is_document(page)
        };
        Self { is_document, is_xml: is_document && to.asked.accept_preferences().prefers_xhtml }
    }
}

impl ResponseWriter<'_, '_> {
    /// The user, if the layout takes the user. The response belongs to that user alone from then
    /// on, as that of a handler that takes the user.
    pub(super) fn layout_user(&mut self) -> Option<Text> {
        let sessions = self.templates.layout_sessions.as_ref()?;
        let own = self.visitor_session.take();
        let session = own.or_else(|| sessions.session_of(self.asked.request()?))?;
        let user = session.look_at_user();
        self.visitor_session = Some(session);
        user
    }

    /// The login whose permissions the page was rendered with, if its handler took a session or a
    /// user.
    fn viewer_login(&self) -> Option<u64> {
        self.visitor_session.as_ref()?.login_number()
    }

    fn begin_page(&mut self, top: &ResponseHead, kind: PageKind) -> Reply<'_> {
        let top = &*self.complete(top);
        let (templates, exchange) = (self.templates, top.exchange(self.asked.exchange));
        // Not by `begin`, whose result would be copied for each page.
        let mut reply = Reply::begin(self.out.buffer, exchange, top.status, &self.date);
        top.write_fields(&mut reply);
        reply.static_lines(if kind.is_xml { XHTML } else { HTML });
        top.write_policy(templates, &mut reply);
        if kind.is_document {
            reply.static_lines(VARY);
        }
        reply
    }
}
