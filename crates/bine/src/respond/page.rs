//! Decides how a page is written behind its head, or before it where the page may change what that says.

use std::borrow::Cow;
use std::rc::Rc;

use bine_html::{Page, Writer};
use bine_http::{Body, Finished, Reply};
use bine_server::Outgoing;

use super::{HTML, Replying, Top, VARY, XHTML, writer_for};
use crate::findings::tell_once;
use crate::look::Look;
use crate::region_key::region_key;
use crate::writing::Writing;

/// What a page says to the layout around it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Above {
    pub(super) title: Cow<'static, str>,
    pub(super) meta: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    /// The page is whole by itself.
    pub(super) is_bare: bool,
}

pub(super) fn write_page<P: Page>(
    page: P,
    top: &Top,
    above: &Above,
    to: &mut Replying<'_, '_>,
) -> Finished {
    // In a layout it is a part of a page that is written anew.
    if let Some(frozen) = page.frozen()
        && (above.is_bare || to.look.is_left_alone(&page))
    {
        let top = &*to.complete(top);
        return to.send_frozen(frozen, top);
    }
    if let Some(writing) = to.writing() {
        return write_with_actions(page, top, above, to, &writing);
    }
    let (look, chunk_at, made_for) = (to.look, to.chunk_at, to.made_for());
    let kind = Kind::of(&page, above, to);
    let mut body = to.begin_page(top, kind).body();
    let Outgoing { buffer, drain } = &mut *to.out;
    let mut spill = |buffer: &mut Vec<u8>| body.flush(buffer, |buffer| drain(buffer));
    let writer = Writer::with_spill(buffer, chunk_at, &mut spill);
    write_content(page, above, look, kind, marking(writer, made_for));
    body.finish(buffer)
}

/// The same in a program with actions. One of them may begin a session, which the head says: so that is written when the
/// page is there, or its first piece is to leave.
fn write_with_actions<P: Page>(
    page: P,
    top: &Top,
    above: &Above,
    to: &mut Replying<'_, '_>,
    writing: &Rc<Writing>,
) -> Finished {
    let (look, chunk_at, made_for) = (to.look, to.chunk_at, to.made_for());
    let kind = Kind::of(&page, above, to);
    let (mut content, mut body) = (Vec::new(), None::<Body>);
    let mut spill = |content: &mut Vec<u8>| {
        let body = body.get_or_insert_with(|| {
            writing.expect_anything();
            to.visit = to.visit.take().or_else(|| writing.visitor());
            to.begin_page(top, kind).body()
        });
        let Outgoing { buffer, drain } = &mut *to.out;
        buffer.append(content);
        body.flush(buffer, |buffer| drain(buffer));
    };
    let writer = marking(Writer::with_spill(&mut content, chunk_at, &mut spill), made_for);
    writing.during(|| write_content(page, above, look, kind, writer));
    let body = body.unwrap_or_else(|| {
        to.visit = to.visit.take().or_else(|| writing.visitor());
        to.begin_page(top, kind).body()
    });
    to.out.buffer.append(&mut content);
    body.finish(to.out.buffer)
}

/// Marks the regions of a page that is made for somebody who has logged in, or for others.
fn marking(writer: Writer<'_>, made_for: Option<u64>) -> Writer<'_> {
    let writer = writer.marking_regions(region_key());
    match made_for {
        Some(login) => writer.viewer(login),
        None => writer,
    }
}

fn write_content<'w, P: Page>(
    page: P,
    above: &Above,
    look: &'w Look,
    kind: Kind,
    writer: Writer<'w>,
) {
    let mut writer = writer.with_head(look.head());
    if look.shows_causes() {
        writer.inspect_with(tell_once);
    }
    let mut writer = writer_for(kind.is_xml, writer);
    if above.is_bare {
        page.write(&mut writer);
    } else {
        look.write(page, &above.title, &above.meta, &mut writer);
    }
}

/// As what a page is written.
#[derive(Clone, Copy)]
struct Kind {
    /// It is whole, so that it could be XML too.
    is_document: bool,
    is_xml: bool,
}

impl Kind {
    fn of(page: &impl Page, above: &Above, to: &Replying<'_, '_>) -> Self {
        let is_document =
            if above.is_bare { page.is_this_document() } else { to.look.is_document(page) };
        Self { is_document, is_xml: is_document && to.asked.taste().prefers_xhtml }
    }
}

impl Replying<'_, '_> {
    /// The login by which the page may show what it shows, of one whose handler has taken a session or a user.
    fn made_for(&self) -> Option<u64> {
        self.visit.as_ref()?.login_number()
    }

    fn begin_page(&mut self, top: &Top, kind: Kind) -> Reply<'_> {
        let top = &*self.complete(top);
        let look = self.look;
        let mut reply = self.begin(top);
        reply.static_lines(if kind.is_xml { XHTML } else { HTML });
        top.write_policy(look, &mut reply);
        if kind.is_document {
            reply.static_lines(VARY);
        }
        reply
    }
}
