"""Checks the script of live pages alone in a browser, against a test server that may fail.

usage: live_browser.py SCRIPT

SCRIPT is the file of the script. The server implements the protocol of the guide; each test defines its pages.
"""

import sys
import time

from selenium.webdriver.common.keys import Keys

from browser import launch_browser
from checks import run_checks
from live_page import LivePage
from live_server import SCRIPT, LiveServer

# The number of random morphs.
MORPHS = 3000
RANDOM_MORPHS = """
const [begin, count, done] = arguments;
const good = ({ all }) => done(all(begin, count) ?? "good");
import("/tools/live_morph.mjs").then(good).catch((error) => done(error.stack));
"""
RUN_THE_SCRIPT = f"""
const [done] = arguments;
import("{SCRIPT}").then(() => fetch("/")).then(() => done("it ran"), (error) => done(String(error)));
"""


class Live(LivePage):
    # The stream.

    def applies_patches(self):
        self.open("<p id=a>one</p>", "<ul><li>x</li></ul>", body="<h1>Here</h1>{0}<hr>{1}")
        self.change(1, "<ul><li>x</li><li>y</li></ul>")
        assert self.run("return document.querySelectorAll('li').length") == 2
        self.change(0, "<p id=a>two\nlines</p>")
        assert self.text("#a") == "two\nlines"
        assert self.text("h1") == "Here"
        assert self.server.asked[0][0]["page"] == "/", self.server.asked
        assert not self.console_messages()

    def sends_the_full_address(self):
        self.open("<p>one</p>")
        self.browser.get(self.server.url("/?forum=a%20b&x=%C3%A4"))
        # The previous page may connect once more before it is gone.
        self.server.wait_for(lambda: any(asked["page"] == "/?forum=a%20b&x=%C3%A4" for asked, _ in self.server.asked))

    def resumes_a_broken_stream(self):
        self.open("<p>one</p>", "<p>same</p>", body="{0}{1}")
        self.change(0, "<p>two</p>")
        have = self.mark()
        self.server.cut()
        self.server.wait_for(lambda: len(self.server.asked) == 2)
        assert self.server.asked[1][0]["have"].split(",")[1] == "1." + have.split(" ")[2], self.server.asked
        assert self.server.asked[1][0]["have"] != self.server.asked[0][0]["have"]
        self.change(0, "<p>three</p>")
        assert self.text("p") == "three"

    def catches_up_after_an_outage(self):
        self.open("<p>one</p>")
        self.server.refusal = lambda is_stream: 503
        self.server.cut()
        self.holds("document.documentElement.dataset.live === 'connecting'")
        self.server.set(0, "<p>two</p>")
        self.server.wait_for(lambda: len(self.server.asked) > 2)
        assert self.text("p") == "one"
        self.server.refusal = lambda is_stream: None
        self.holds("document.querySelector('p').textContent === 'two'")
        self.is_open()

    def parses_a_stream_in_any_pieces(self):
        self.open("<p>one</p>")
        event = "event: patch\ndata: 0 00ff\ndata: <p>\u00e4\ndata: \U0001f33f</p>\n\n"
        raw = event.encode()
        for at in range(len(raw)):
            with self.server.changed:
                self.server.raw += raw[at : at + 1]
                self.server.changed.notify_all()
            time.sleep(0.002)
        self.holds("document.querySelector('p').textContent === '\u00e4\\n\U0001f33f'")
        assert self.mark() == "/live 0 00ff"

    def ignores_unknown_events(self):
        self.open("<p>one</p>")
        for raw in ["event: patch\ndata: nonsense\n\n", "event: patch\ndata: 7 00\ndata: <p>x\n\n", ": x\n\n", "event: else\ndata: 1\n\n", "event: event\ndata: {\n\n", "\n\n\n\n", "id: 7\n\n"]:
            self.server.send(raw)
            self.change(0, f"<p>{len(self.server.raw)}</p>")
        assert self.text("p") == str(len(self.server.raw))

    def fetches_a_page_with_changed_regions(self):
        self.open("<p>one</p>", body="<h1>Old</h1><input id=draft>{0}")
        self.find("#draft").send_keys("half a sen")
        self.server.pages["/"] = ("New title", "<h1>New</h1><input id=draft>{0}{1}")
        with self.server.changed:
            self.server.regions.append("<p id=more>more</p>")
            self.server.changed.notify_all()
        self.holds("document.querySelector('#more')")
        assert self.browser.title == "New title" and self.text("h1") == "New"
        assert self.run("return document.querySelector('#draft').value") == "half a sen"
        self.server.wait_for(lambda: "1." in self.server.asked[-1][0]["have"])
        self.is_open()

    def reloads_when_access_is_revoked(self):
        self.open("<p>one</p>")
        self.server.refusal = lambda is_stream: 403
        self.server.pages["/"] = ("Closed", "<h1>Log in</h1>")
        self.server.cut()
        self.holds("document.title === 'Closed'")
        self.holds("document.documentElement.dataset.live === 'closed'")

    def is_hidden(self):
        self.holds("!document.title && getComputedStyle(document.documentElement).display === 'none'")

    def hides_a_private_page_at_once(self):
        self.open("<p>secret</p>", body="<h1>Private</h1>{0}")
        late = self.server.delay("/")
        # The page is gone for strangers.
        self.server.pages.clear()
        began = time.monotonic()
        self.server.send("event: reload\ndata: hide\n\n")
        self.is_hidden()
        took = time.monotonic() - began
        late.allowed.set()
        self.holds("document.title === 'Missing' && document.documentElement.checkVisibility()")
        assert self.text("p") is None
        return f"hidden after {1000 * took:.0f} ms, replaced after {1000 * (time.monotonic() - began):.0f} ms"

    def replaces_a_private_page_in_place(self):
        self.open("<p>secret</p>", body="<h1>Private</h1><input id=draft>{0}")
        self.find("#draft").send_keys("half a secret")
        self.run("window.stays = true")
        self.server.pages["/"] = ("Public", "<h1>Log in</h1><input id=draft>{0}")
        with self.server.changed:
            self.server.regions[0] = "<p>for all</p>"
            self.server.raw += b"event: reload\ndata: hide\n\n"
            self.server.changed.notify_all()
        self.holds("document.title === 'Public' && document.documentElement.checkVisibility()")
        self.holds("document.querySelector('p').textContent === 'for all'")
        assert self.run("return [window.stays, document.querySelector('#draft').value]") == [True, ""]
        self.is_open()

    def hides_a_private_page_from_back(self):
        mark = "<!--live 999--><!--/live 999 0000000000000007-->"
        self.open("<p>secret</p>", body=mark + "<h1>Private</h1>{0}", other=("Other", "<h1>Other</h1>"))
        self.run("window.stays = true; addEventListener('pageshow', () => { window.shown = document.documentElement.checkVisibility() })")
        self.browser.get(self.server.url("/other"))
        late = self.server.delay("/")
        self.server.pages["/"] = ("Public", "<h1>Log in</h1>{0}")
        self.server.set(0, "<p>for all</p>")
        self.run("history.back()")
        assert late.asked.wait(20)
        late.allowed.set()
        self.holds("document.title === 'Public' && document.documentElement.checkVisibility()")
        assert self.run("return window.stays && window.shown") in (None, False)
        assert self.text("p") == "for all"
        self.is_open()

    def hides_a_private_page_while_the_server_fails(self):
        self.open("<p>secret</p>")
        hide = "event: reload\ndata: hide\n\n"
        self.server.page_status = 503
        self.server.send(hide)
        self.is_hidden()
        self.server.wait_for(lambda: len(self.server.asked) > 1)
        self.is_open()
        self.is_hidden()
        self.server.page_status = 200
        self.server.pages["/"] = ("Public", "{0}")
        # A server that knows the login of the page sends this by itself.
        self.server.send(hide)
        self.holds("document.title === 'Public' && document.documentElement.checkVisibility()")

    def shows_the_page_after_a_logout(self):
        logout = '<form method=post action="/logout"><button>Log out</button></form>'
        self.open("<p>secret</p>", body="<h1>Private</h1>{0}" + logout, welcome=("Welcome", "<h1>Welcome</h1>"))

        def post(exchange, body):
            # The login ends before the form is answered.
            del self.server.pages["/"]
            self.server.send("event: reload\ndata: hide\n\n")
            self.is_hidden()
            return 303, "Location", "/welcome"

        self.server.post = post
        self.run("window.stays = true; document.querySelector('button').click()")
        self.holds("document.title === 'Welcome' && document.documentElement.checkVisibility()")
        assert self.run("return [window.stays, location.pathname]") == [True, "/welcome"]

    def refreshes_for_a_new_version_once(self):
        for is_outdated in [False, True]:
            self.open()
            self.server.regions.append("<p>one</p>")
            self.server.pages["/"] = ("Old", "<h1>Old</h1><input id=draft>{0}")
            self.server.page_version = self.server.version = "0000000000000001"
            self.browser.get(self.server.url())
            self.is_open()
            self.find("#draft").send_keys("half a sen")
            self.run("window.stays = true; window.refreshes = 0; document.addEventListener('bine:patch', ({ detail }) => { refreshes += detail.region === null })")
            # The same version does not refresh it.
            count = len(self.server.asked)
            self.server.cut()
            self.server.wait_for(lambda: len(self.server.asked) > count)
            self.change(0, "<p>two</p>")
            assert self.run("return refreshes") == 0
            self.server.version = "0000000000000002"
            self.server.pages["/"] = ("New", "<h1>New</h1><input id=draft>{0}")
            if not is_outdated:
                self.server.page_version = self.server.version
            self.server.cut()
            self.holds("document.title === 'New'")
            self.server.wait_for(lambda: "998.0000000000000002" in self.server.asked[-1][0]["have"])
            self.is_open()
            self.change(0, "<p>three</p>")
            assert self.run("return [stays, refreshes, document.querySelector('#draft').value]") == [True, 1, "half a sen"]
            assert self.run("return document.activeElement.id") == "draft"

    def ignores_pages_that_are_not_live(self):
        self.open("<p>one</p>")
        self.server.refusal = lambda is_stream: 204
        self.server.cut()
        self.holds("document.documentElement.dataset.live === 'closed'")
        self.open(body="<h1>Still</h1>")
        # The script has run, and the page's next request has been answered.
        ran = self.browser.execute_async_script(RUN_THE_SCRIPT)
        assert ran == "it ran", ran
        assert not self.server.asked

    def polls_when_streams_are_buffered(self):
        self.open()
        self.server.regions.append("<p>one</p>")
        self.server.is_held = True
        self.browser.get(self.server.url())
        self.server.wait_for(lambda: any(not is_stream for _, is_stream in self.server.asked))
        self.change(0, "<p>two</p>")
        self.change(0, "<p>three</p>")
        assert self.text("p") == "three"
        self.is_open()
        # A poll without changes is followed by the next poll, however short it was.
        count = len(self.server.asked)
        self.server.wait_for(lambda: len(self.server.asked) > count + 1)
        self.is_open()

    def retries_streams_after_an_error(self):
        self.open("<p>one</p>")
        self.server.refusal = lambda is_stream: 502
        self.server.cut()
        self.server.wait_for(lambda: len(self.server.asked) > 4)
        assert all(is_stream for _, is_stream in self.server.asked[-4:])

    def catches_up_after_back(self):
        self.open("<p>one</p>", other=("Other", "<h1>Other</h1>"))
        self.browser.get(self.server.url("/other"))
        self.browser.back()
        self.server.set(0, "<p>while away</p>")
        self.holds("document.querySelector('p')?.textContent === 'while away'")
        self.is_open()

    def disconnects_hidden_pages(self):
        self.open("<p>one</p>")
        # Timers fire at once.
        hide = "Object.defineProperty(document, 'hidden', { value: arguments[0], configurable: true }); const { setTimeout } = window; if (arguments[0]) window.setTimeout = (done) => done(); document.dispatchEvent(new Event('visibilitychange')); window.setTimeout = setTimeout"
        self.run(hide, True)
        self.holds("document.documentElement.dataset.live === 'closed'")
        self.server.set(0, "<p>two</p>")
        self.run(hide, False)
        self.holds("document.querySelector('p').textContent === 'two'")

    # The morph.

    def morphs_random_markup(self):
        self.open(body="<p>x")
        step = 500
        for begin in range(0, MORPHS, step):
            done = self.browser.execute_async_script(RANDOM_MORPHS, begin, step)
            assert done == "good", done

    def keeps_typed_text(self):
        field = '<p>{0}</p><form><input name=body value="{1}"><textarea name=more>{2}</textarea><input name=other value="{3}"></form>'
        self.open(field.format("a", "", "", ""))
        self.find("input").send_keys("hello", Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        self.run("window.field = document.activeElement")
        self.change(0, "<b>new</b>" + field.format("b", "from the server", "", "x"))
        assert self.run("return window.field === document.activeElement && window.field.isConnected")
        assert self.run("return [field.value, field.selectionStart, field.selectionEnd]") == ["hello", 3, 3]
        assert self.run("return document.querySelector('[name=other]').value") == "x"
        self.run("window.field.blur()")
        self.change(0, field.format("c", "again", "t", "y"))
        assert self.run("return [field.value, field.defaultValue]") == ["hello", "again"]
        assert self.run("return document.querySelector('textarea').value") == "t"
        # A value restored to the server's is the server's to change.
        self.run("field.value = 'again'")
        self.change(0, field.format("d", "last", "", "y"))
        assert self.run("return field.value") == "last"

    def keeps_selections(self):
        page = (
            '<form><input type=checkbox name=a {0}><input type=radio name=r value=1 {1}><input type=radio name=r value=2 {2}><input type=radio name=r value=3 {3}>'
            "<select name=s><option>x</option>{4}<option {5}>y</option><option>z</option></select><select name=m multiple><option>p</option><option>q</option></select>"
            "<input type=range name=level min=0 max=9 value={6}></form>"
        )
        self.open(page.format("", "checked", "", "", "", "", 3))
        self.find("[name=a]").click()
        self.find("[value='2']").click()
        self.run("document.querySelector('[name=s]').value = 'z'; document.querySelector('[name=m]').options[1].selected = true")
        self.change(0, page.format("", "", "", "checked", "<option>new</option>", "selected", 5))
        state = "return [...document.querySelectorAll('input,select')].map((one) => one.type.startsWith('sel') || one.type === 'range' ? one.value : one.checked)"
        assert self.run(state) == [True, False, True, False, "z", "q", "5"], self.run(state)
        # Without a choice by the user, the server decides.
        self.open(page.format("", "checked", "", "", "", "", 3))
        self.change(0, page.format("checked", "", "", "checked", "", "selected", 3))
        assert self.run(state) == [True, False, False, True, "y", "", "3"], self.run(state)

    def keeps_open_elements(self):
        page = "<p>{0}</p><details><summary>s</summary>{0}</details><dialog><p>{0}</p></dialog><div popover>{0}</div>"
        self.open(page.format("a"))
        self.run("document.querySelector('dialog').showModal(); document.querySelector('[popover]').showPopover(); document.querySelector('details').open = true")
        self.change(0, page.format("b"))
        assert self.run("return [document.querySelector('details').open, document.querySelector('dialog').matches(':modal'), document.querySelector('[popover]').matches(':popover-open')]") == [True] * 3
        assert self.text("[popover]") == "b"

    def lists_keep_their_elements(self):
        row = '<li id="m{0}"><video muted></video><input> {0}</li>'
        self.open("<ul>" + "".join(row.format(n) for n in range(6)) + "</ul>")
        self.run("window.rows = [...document.querySelectorAll('li')]; rows[4].querySelector('input').focus(); window.blurs = 0; addEventListener('blur', () => blurs++, true)")
        self.run("window.moved = 0; new MutationObserver((all) => { moved += all.filter((one) => one.addedNodes.length).length }).observe(document.querySelector('ul'), { childList: true })")
        self.change(0, "<ul>" + "".join(row.format(n) for n in [4, 0, 7, 1, 3, 5]) + "</ul>")
        assert self.run("return [...document.querySelectorAll('li')].map((one) => rows.indexOf(one))") == [4, 0, -1, 1, 3, 5]
        assert self.run("return [blurs, document.activeElement === rows[4].querySelector('input')]") == [0, True]

    def handles_fields_named_like_properties(self):
        fields = "".join(f"<input name={name}>" for name in ["remove", "contains", "matches", "append", "closest", "content", "form", "open", "type", "data"])
        self.open(f"<p>one</p><form>{fields}</form><form id=f>{fields}<b id=b>x</b></form>")
        self.find("[name=remove]").send_keys("kept")
        self.change(0, f"<p>two</p><i></i><form class=red>{fields}</form><hr><form id=f>{fields}<b id=b>y</b></form>")
        assert self.text("p") == "two" and self.text("#b") == "y"
        assert self.run("return [document.querySelector('form').className, document.querySelector('[name=remove]').value]") == ["red", "kept"]
        self.change(0, "<p>three</p><b id=b>z</b>")
        assert self.run("return [document.forms.length, document.querySelector('p').textContent]") == [0, "three"]
        assert not self.console_messages()

    def matches_checkboxes_by_value(self):
        row = "<li>{1}<input type=checkbox name=a value={0}></li>"
        self.open("<ul><li>" + "".join(row.format(n, "x") for n in range(3)) + "</ul>")
        self.run("document.querySelector('[value=\"0\"]').checked = true")
        self.change(0, "<ul><li>" + "".join(row.format(n, "y") for n in [1, 2]) + "</ul>")
        assert self.run("return document.querySelectorAll(':checked').length") == 0

    def does_not_move_the_focus(self):
        self.open("<p>one</p>")
        self.change(0, "<p>two</p><input autofocus>")
        self.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert self.run("return document.activeElement.localName") == "body"

    def does_not_request_the_result_of_a_form(self):
        for status in [404, 405]:
            self.open("<p>one</p>")
            self.run("window.stays = true")
            count = len(self.server.asked)
            self.server.refusal = lambda is_stream: status
            self.server.cut()
            self.holds("document.documentElement.dataset.live === 'closed'")
            assert self.run("return window.stays") and len(self.server.asked) == count + 1

    def reloads_for_a_region_across_elements(self):
        self.open("<p>one</p>", body="<div id=a>{0}</div>")
        self.run("const [begin] = document.querySelector('#a').childNodes; document.body.prepend(begin)")
        self.server.pages["/"] = ("Anew", "<div id=a>{0}</div>")
        self.server.set(0, "<p>two</p>")
        self.holds("document.title === 'Anew'")
        self.logs("spans")

    def keeps_scroll_position_and_kept_elements(self):
        page = "<p>{0}</p><textarea rows=3>{0}</textarea><div data-keep id=mine><b>{0}</b></div>"
        self.open(page.format("x\n" * 200))
        self.run("window.box = document.querySelector('textarea'); box.scrollTop = 70; document.querySelector('#mine').append('!')")
        self.change(0, page.format("x\n" * 300))
        assert self.run("return [box.isConnected, box.scrollTop]") == [True, 70]
        assert self.text("#mine") == "x\n" * 200 + "!"

    def scripts_in_patches_never_run(self):
        self.open("<p>one</p>")
        evil = "<p>two</p><script>window.ran = 1</script><script src=/tools/live_morph.mjs type=module></script><svg><script>window.ran = 3</script></svg><img src={} onerror='window.ran = 2'>"
        self.change(0, evil.format("/x"))
        self.server.pages["/"] = ("Anew", "<script src='/source/evil.js'></script>{0}{1}" + evil.format("/y"))
        with self.server.changed:
            self.server.regions.append("<p id=more>more</p>")
            self.server.changed.notify_all()
        self.holds("document.title === 'Anew'")
        # The browser would request earlier scripts before these images.
        for image in ["/x", "/y"]:
            self.holds(f"performance.getEntriesByName(location.origin + '{image}').length")
        assert self.run("return window.ran") is None
        asked = self.run("return performance.getEntriesByType('resource').map((one) => one.name)")
        assert not [name for name in asked if "live_morph" in name or "evil" in name], asked

    def parses_rows_options_and_svg(self):
        self.open("<tr><td>1</td></tr>", "<option>a</option>", "<circle r=1 />", body="<table><tbody>{0}</tbody></table><select>{1}</select><svg>{2}</svg>")
        self.change(0, "<tr><td>1</td></tr><tr><td>2</td></tr>")
        self.change(1, "<option>a</option><option selected>b</option>")
        self.change(2, "<circle r=1 /><rect width=2 />")
        assert self.run("return document.querySelector('tbody').rows.length") == 2
        assert self.run("return document.querySelector('select').value") == "b"
        assert self.run("return document.querySelector('rect').namespaceURI").endswith("svg")

    def reports_duplicate_ids(self):
        self.open("<p id=a>1</p><p id=a>2</p>")
        self.change(0, "<p id=a>3</p><p id=a>4</p><p id=a>5</p>")
        assert self.run("return [...document.querySelectorAll('p')].map((one) => one.textContent).join()") == "3,4,5"
        self.logs("more than once")

    def handles_deep_markup(self):
        self.open("<p>one</p>")
        self.change(0, "<b>" * 20000 + "deep")
        self.change(0, "<b>" * 20000 + "deeper")
        self.change(0, "<p>flat</p>")
        assert self.text("p") == "flat"

    def reverses_a_long_list(self):
        row = "<li id=r{0}><a href=/{0}>{0}</a> <b>{1}</b></li>"
        self.open("<ul>" + "".join(row.format(n, "a") for n in range(5000)) + "</ul>")
        self.change(0, "<ul>" + "".join(row.format(n, "b") for n in reversed(range(5000))) + "</ul>")
        assert self.run("return document.querySelector('li').id") == "r4999"


def main():
    _, script = sys.argv
    server = LiveServer(script)
    with launch_browser() as browser:
        live = Live(browser, server)
        run_checks([
            ("a patch changes its region only", live.applies_patches),
            ("a stream sends the full address of its page", live.sends_the_full_address),
            ("a broken stream resumes from the displayed state", live.resumes_a_broken_stream),
            ("a page catches up after an outage of the server", live.catches_up_after_an_outage),
            ("a stream is parsed however it is split", live.parses_a_stream_in_any_pieces),
            ("unknown events are ignored", live.ignores_unknown_events),
            ("a page with changed regions is fetched, and typed text stays", live.fetches_a_page_with_changed_regions),
            ("a page reloads when its access is revoked", live.reloads_when_access_is_revoked),
            ("a private page is hidden before its replacement arrives", live.hides_a_private_page_at_once),
            ("a private page becomes the page of a stranger, without typed text", live.replaces_a_private_page_in_place),
            ("a private page that Back returns to is hidden until the server has answered", live.hides_a_private_page_from_back),
            ("a private page stays hidden while the server fails", live.hides_a_private_page_while_the_server_fails),
            ("the form that logs out leads to its page", live.shows_the_page_after_a_logout),
            ("a new version refreshes a page once, even if a cache has the old page", live.refreshes_for_a_new_version_once),
            ("a page that is not live sends no request", live.ignores_pages_that_are_not_live),
            ("a page polls when a proxy buffers streams", live.polls_when_streams_are_buffered),
            ("a page whose streams fail retries them and does not poll", live.retries_streams_after_an_error),
            ("a page catches up after Back", live.catches_up_after_back),
            ("a hidden page closes its connection", live.disconnects_hidden_pages),
            (f"{MORPHS} random pieces of markup are morphed", live.morphs_random_markup),
            ("patches keep typed text", live.keeps_typed_text),
            ("patches keep the selections of the user", live.keeps_selections),
            ("details, dialogs and popovers stay open", live.keeps_open_elements),
            ("rows with ids are moved, and the focus with them", live.lists_keep_their_elements),
            ("fields named like properties of forms do no harm", live.handles_fields_named_like_properties),
            ("checkboxes without ids are matched by value", live.matches_checkboxes_by_value),
            ("a patch does not move the focus", live.does_not_move_the_focus),
            ("the result of a form is not requested again", live.does_not_request_the_result_of_a_form),
            ("a region across elements is reported, and the page fetched", live.reloads_for_a_region_across_elements),
            ("scroll positions and data-keep elements are kept", live.keeps_scroll_position_and_kept_elements),
            ("scripts in patches never run", live.scripts_in_patches_never_run),
            ("table rows, options and SVG are parsed in context", live.parses_rows_options_and_svg),
            ("duplicate ids are reported and do no harm", live.reports_duplicate_ids),
            ("deep markup is handled", live.handles_deep_markup),
            ("five thousand rows are reversed", live.reverses_a_long_list),
        ])


if __name__ == "__main__":
    main()
