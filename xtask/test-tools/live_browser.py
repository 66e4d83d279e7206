"""Decides what the script of live pages must do in a real browser, alone: against a server of its own that may break.

usage: live_browser.py SCRIPT

SCRIPT is the file that a page is served. The server speaks the protocol as the guide has it; what
the pages are is said by each test.
"""

import sys
import time

from selenium.webdriver.common.keys import Keys

from browser import a_browser
from judge import judge
from live_page import LivePage
from live_server import SCRIPT, LiveServer

# Random pages made into others.
MORPHS = 3000
RANDOM_MORPHS = """
const [begin, count, done] = arguments;
const good = ({ all }) => done(all(begin, count) ?? "good");
import("/judge/live_morph.mjs").then(good).catch((error) => done(error.stack));
"""
RUN_THE_SCRIPT = f"""
const [done] = arguments;
import("{SCRIPT}").then(() => fetch("/")).then(() => done("it ran"), (error) => done(String(error)));
"""


class Live(LivePage):
    # The stream.

    def patches_come(self):
        self.open("<p id=a>one</p>", "<ul><li>x</li></ul>", body="<h1>Here</h1>{0}<hr>{1}")
        self.change(1, "<ul><li>x</li><li>y</li></ul>")
        assert self.run("return document.querySelectorAll('li').length") == 2
        self.change(0, "<p id=a>two\nlines</p>")
        assert self.text("#a") == "two\nlines"
        assert self.text("h1") == "Here"
        assert self.server.asked[0][0]["page"] == "/", self.server.asked
        assert not self.said()

    def the_address_is_told_whole(self):
        self.open("<p>one</p>")
        self.browser.get(self.server.url("/?forum=a%20b&x=%C3%A4"))
        # The page that was open before may come once more while it goes.
        self.server.wait_for(lambda: any(asked["page"] == "/?forum=a%20b&x=%C3%A4" for asked, _ in self.server.asked))

    def a_broken_stream_is_taken_up(self):
        self.open("<p>one</p>", "<p>same</p>", body="{0}{1}")
        self.change(0, "<p>two</p>")
        have = self.mark()
        self.server.cut()
        self.server.wait_for(lambda: len(self.server.asked) == 2)
        assert self.server.asked[1][0]["have"].split(",")[1] == "1." + have.split(" ")[2], self.server.asked
        assert self.server.asked[1][0]["have"] != self.server.asked[0][0]["have"]
        self.change(0, "<p>three</p>")
        assert self.text("p") == "three"

    def what_is_missed_comes_later(self):
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

    def bytes_may_come_in_any_pieces(self):
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

    def odd_events_hurt_nothing(self):
        self.open("<p>one</p>")
        for raw in ["event: patch\ndata: nonsense\n\n", "event: patch\ndata: 7 00\ndata: <p>x\n\n", ": x\n\n", "event: else\ndata: 1\n\n", "event: event\ndata: {\n\n", "\n\n\n\n", "id: 7\n\n"]:
            self.server.send(raw)
            self.change(0, f"<p>{len(self.server.raw)}</p>")
        assert self.text("p") == str(len(self.server.raw))

    def a_region_gone_is_fetched_with_its_page(self):
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

    def who_may_not_follow_sees_the_page_anew(self):
        self.open("<p>one</p>")
        self.server.refusal = lambda is_stream: 403
        self.server.pages["/"] = ("Closed", "<h1>Log in</h1>")
        self.server.cut()
        self.holds("document.title === 'Closed'")
        self.holds("document.documentElement.dataset.live === 'closed'")

    def what_is_not_live_is_left_alone(self):
        self.open("<p>one</p>")
        self.server.refusal = lambda is_stream: 204
        self.server.cut()
        self.holds("document.documentElement.dataset.live === 'closed'")
        self.open(body="<h1>Still</h1>")
        # The script has run, and what the page asks for afterwards has been answered.
        ran = self.browser.execute_async_script(RUN_THE_SCRIPT)
        assert ran == "it ran", ran
        assert not self.server.asked

    def polls_where_streams_do_not_come_through(self):
        self.open()
        self.server.regions.append("<p>one</p>")
        self.server.is_held = True
        self.browser.get(self.server.url())
        self.server.wait_for(lambda: any(not is_stream for _, is_stream in self.server.asked))
        self.change(0, "<p>two</p>")
        self.change(0, "<p>three</p>")
        assert self.text("p") == "three"
        self.is_open()
        # A poll that waited in vain is followed by another, however short it was.
        count = len(self.server.asked)
        self.server.wait_for(lambda: len(self.server.asked) > count + 1)
        self.is_open()

    def who_is_refused_comes_again_by_streams(self):
        self.open("<p>one</p>")
        self.server.refusal = lambda is_stream: 502
        self.server.cut()
        self.server.wait_for(lambda: len(self.server.asked) > 4)
        assert all(is_stream for _, is_stream in self.server.asked[-4:])

    def a_page_left_is_followed_no_more(self):
        self.open("<p>one</p>", other=("Other", "<h1>Other</h1>"))
        self.browser.get(self.server.url("/other"))
        self.browser.back()
        self.server.set(0, "<p>while away</p>")
        self.holds("document.querySelector('p')?.textContent === 'while away'")
        self.is_open()

    def what_nobody_sees_is_not_followed(self):
        self.open("<p>one</p>")
        # What takes time is done at once.
        hide = "Object.defineProperty(document, 'hidden', { value: arguments[0], configurable: true }); const { setTimeout } = window; if (arguments[0]) window.setTimeout = (done) => done(); document.dispatchEvent(new Event('visibilitychange')); window.setTimeout = setTimeout"
        self.run(hide, True)
        self.holds("document.documentElement.dataset.live === 'closed'")
        self.server.set(0, "<p>two</p>")
        self.run(hide, False)
        self.holds("document.querySelector('p').textContent === 'two'")

    # The morph.

    def anything_becomes_anything(self):
        self.open(body="<p>x")
        step = 500
        for begin in range(0, MORPHS, step):
            done = self.browser.execute_async_script(RANDOM_MORPHS, begin, step)
            assert done == "good", done

    def who_types_is_not_disturbed(self):
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
        # What was typed and taken back is the server's again.
        self.run("field.value = 'again'")
        self.change(0, field.format("d", "last", "", "y"))
        assert self.run("return field.value") == "last"

    def choices_are_not_disturbed(self):
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
        # Nobody chose here, so the server does.
        self.open(page.format("", "checked", "", "", "", "", 3))
        self.change(0, page.format("checked", "", "", "checked", "", "selected", 3))
        assert self.run(state) == [True, False, False, True, "y", "", "3"], self.run(state)

    def what_is_open_stays_open(self):
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

    def fields_hide_nothing_of_their_form(self):
        fields = "".join(f"<input name={name}>" for name in ["remove", "contains", "matches", "append", "closest", "content", "form", "open", "type", "data"])
        self.open(f"<p>one</p><form>{fields}</form><form id=f>{fields}<b id=b>x</b></form>")
        self.find("[name=remove]").send_keys("kept")
        self.change(0, f"<p>two</p><i></i><form class=red>{fields}</form><hr><form id=f>{fields}<b id=b>y</b></form>")
        assert self.text("p") == "two" and self.text("#b") == "y"
        assert self.run("return [document.querySelector('form').className, document.querySelector('[name=remove]').value]") == ["red", "kept"]
        self.change(0, "<p>three</p><b id=b>z</b>")
        assert self.run("return [document.forms.length, document.querySelector('p').textContent]") == [0, "three"]
        assert not self.said()

    def boxes_are_known_by_their_values(self):
        row = "<li>{1}<input type=checkbox name=a value={0}></li>"
        self.open("<ul><li>" + "".join(row.format(n, "x") for n in range(3)) + "</ul>")
        self.run("document.querySelector('[value=\"0\"]').checked = true")
        self.change(0, "<ul><li>" + "".join(row.format(n, "y") for n in [1, 2]) + "</ul>")
        assert self.run("return document.querySelectorAll(':checked').length") == 0

    def a_patch_takes_no_focus(self):
        self.open("<p>one</p>")
        self.change(0, "<p>two</p><input autofocus>")
        self.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert self.run("return document.activeElement.localName") == "body"

    def what_a_form_led_to_is_not_asked_for_again(self):
        for status in [404, 405]:
            self.open("<p>one</p>")
            self.run("window.stays = true")
            count = len(self.server.asked)
            self.server.refusal = lambda is_stream: status
            self.server.cut()
            self.holds("document.documentElement.dataset.live === 'closed'")
            assert self.run("return window.stays") and len(self.server.asked) == count + 1

    def a_region_within_one_element_alone(self):
        self.open("<p>one</p>", body="<div id=a>{0}</div>")
        self.run("const [begin] = document.querySelector('#a').childNodes; document.body.prepend(begin)")
        self.server.pages["/"] = ("Anew", "<div id=a>{0}</div>")
        self.server.set(0, "<p>two</p>")
        self.holds("document.title === 'Anew'")
        self.says("spans")

    def scrolls_and_keeps(self):
        page = "<p>{0}</p><textarea rows=3>{0}</textarea><div data-keep id=mine><b>{0}</b></div>"
        self.open(page.format("x\n" * 200))
        self.run("window.box = document.querySelector('textarea'); box.scrollTop = 70; document.querySelector('#mine').append('!')")
        self.change(0, page.format("x\n" * 300))
        assert self.run("return [box.isConnected, box.scrollTop]") == [True, 70]
        assert self.text("#mine") == "x\n" * 200 + "!"

    def scripts_in_patches_never_run(self):
        self.open("<p>one</p>")
        evil = "<p>two</p><script>window.ran = 1</script><script src=/judge/live_morph.mjs type=module></script><svg><script>window.ran = 3</script></svg><img src={} onerror='window.ran = 2'>"
        self.change(0, evil.format("/x"))
        self.server.pages["/"] = ("Anew", "<script src='/source/evil.js'></script>{0}{1}" + evil.format("/y"))
        with self.server.changed:
            self.server.regions.append("<p id=more>more</p>")
            self.server.changed.notify_all()
        self.holds("document.title === 'Anew'")
        # Scripts that come before these images would have been asked for before them.
        for image in ["/x", "/y"]:
            self.holds(f"performance.getEntriesByName(location.origin + '{image}').length")
        assert self.run("return window.ran") is None
        asked = self.run("return performance.getEntriesByType('resource').map((one) => one.name)")
        assert not [name for name in asked if "live_morph" in name or "evil" in name], asked

    def rows_options_and_drawings_are_read_as_such(self):
        self.open("<tr><td>1</td></tr>", "<option>a</option>", "<circle r=1 />", body="<table><tbody>{0}</tbody></table><select>{1}</select><svg>{2}</svg>")
        self.change(0, "<tr><td>1</td></tr><tr><td>2</td></tr>")
        self.change(1, "<option>a</option><option selected>b</option>")
        self.change(2, "<circle r=1 /><rect width=2 />")
        assert self.run("return document.querySelector('tbody').rows.length") == 2
        assert self.run("return document.querySelector('select').value") == "b"
        assert self.run("return document.querySelector('rect').namespaceURI").endswith("svg")

    def doubled_ids_are_told_and_borne(self):
        self.open("<p id=a>1</p><p id=a>2</p>")
        self.change(0, "<p id=a>3</p><p id=a>4</p><p id=a>5</p>")
        assert self.run("return [...document.querySelectorAll('p')].map((one) => one.textContent).join()") == "3,4,5"
        self.says("more than once")

    def depth_is_no_danger(self):
        self.open("<p>one</p>")
        self.change(0, "<b>" * 20000 + "deep")
        self.change(0, "<b>" * 20000 + "deeper")
        self.change(0, "<p>flat</p>")
        assert self.text("p") == "flat"

    def long_lists_are_quick(self):
        row = "<li id=r{0}><a href=/{0}>{0}</a> <b>{1}</b></li>"
        self.open("<ul>" + "".join(row.format(n, "a") for n in range(5000)) + "</ul>")
        self.change(0, "<ul>" + "".join(row.format(n, "b") for n in reversed(range(5000))) + "</ul>")
        assert self.run("return document.querySelector('li').id") == "r4999"


def main():
    _, script = sys.argv
    server = LiveServer(script)
    with a_browser() as browser:
        live = Live(browser, server)
        judge([
            ("a patch changes its region and nothing else", live.patches_come),
            ("a stream names its page, query and all", live.the_address_is_told_whole),
            ("a stream that breaks is taken up with what is shown", live.a_broken_stream_is_taken_up),
            ("what a page has missed comes when the server is back", live.what_is_missed_comes_later),
            ("a stream is read in whatever pieces it comes", live.bytes_may_come_in_any_pieces),
            ("events that nobody understands hurt nothing", live.odd_events_hurt_nothing),
            ("a page with other regions is fetched, and what is typed stays", live.a_region_gone_is_fetched_with_its_page),
            ("who may not follow any more sees the page anew", live.who_may_not_follow_sees_the_page_anew),
            ("a page that is not live asks for nothing", live.what_is_not_live_is_left_alone),
            ("a page polls where streams do not come through", live.polls_where_streams_do_not_come_through),
            ("a page whose streams are refused does not poll", live.who_is_refused_comes_again_by_streams),
            ("a page that is come back to catches up", live.a_page_left_is_followed_no_more),
            ("a page that nobody sees gives its connection back", live.what_nobody_sees_is_not_followed),
            (f"{MORPHS} random pieces of markup become others", live.anything_becomes_anything),
            ("patches do not disturb who types", live.who_types_is_not_disturbed),
            ("patches leave boxes, buttons and lists as they were chosen", live.choices_are_not_disturbed),
            ("details, dialogs and popovers stay open", live.what_is_open_stays_open),
            ("rows with ids are moved, and the focus with them", live.lists_keep_their_elements),
            ("fields hide nothing of their form", live.fields_hide_nothing_of_their_form),
            ("boxes without ids are known by their values", live.boxes_are_known_by_their_values),
            ("a patch takes no focus", live.a_patch_takes_no_focus),
            ("what a form led to is not asked for again", live.what_a_form_led_to_is_not_asked_for_again),
            ("a region that spans elements is told, and the page fetched", live.a_region_within_one_element_alone),
            ("what is kept is kept", live.scrolls_and_keeps),
            ("scripts in patches never run", live.scripts_in_patches_never_run),
            ("rows, options and drawings are read as such", live.rows_options_and_drawings_are_read_as_such),
            ("ids that are there twice are told and borne", live.doubled_ids_are_told_and_borne),
            ("markup of any depth is borne", live.depth_is_no_danger),
            ("five thousand rows are turned around", live.long_lists_are_quick),
        ])


if __name__ == "__main__":
    main()
