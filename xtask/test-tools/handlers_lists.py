"""Checks of pages that handlers change at once: lists, their order, and the progress of an upload."""

import json
import random
import struct
import urllib.request
import zlib

from selenium.webdriver.common.keys import Keys

from handlers_page import Page
from program import until
from relay import Relay

WIDTH, HEIGHT = 1600, 1500


class Lists(Page):
    def checks(self):
        return [
            ("an added item is shown at once, and stays once when the service accepts it", self.an_added_item_stays_once),
            ("an added item disappears when the service refuses it, and the message is at the form", self.a_refused_item_disappears),
            ("a changed item is shown at once, and stays when the service accepts the change", self.an_accepted_change_stays),
            ("a changed item returns when the service refuses the change, with the message", self.a_refused_change_is_undone),
            ("a removed item disappears at once, and returns when the service refuses, with the message", self.a_removed_item_returns_when_refused),
            ("a change of a different visitor during a request does not disturb its outcome", self.a_change_from_elsewhere_does_not_disturb),
            ("an item is moved by drag and drop, and an open page elsewhere shows the new order", self.an_item_is_dragged),
            ("an item is moved by keys, keeps the focus, and an open page elsewhere shows the new order", self.an_item_is_moved_by_keys),
            ("a handler shows the progress of an upload, and the file arrives byte for byte", self.an_upload_shows_its_progress),
        ]

    def plan(self, *titles):
        """Empties the list, then adds items from elsewhere."""
        self.open("/list")
        for id in self.value("[...document.querySelectorAll('#plans li')].map((one) => one.id.slice(5))"):
            self.call("drop", json.dumps({"id": id}))
        self.shows(["Locked"] if "Locked" in self.titles() else [])
        for title in titles:
            self.call("plan", json.dumps({"title": title}))
        until(lambda: set(titles) <= set(self.titles()), self.titles)

    def titles(self):
        return self.value("[...document.querySelectorAll('#plans li')].map((one) => (one.querySelector('span') ?? one).textContent)")

    def shows(self, titles):
        until(lambda: self.titles() == titles, lambda: f"{titles}: {self.titles()}")

    def item(self, title):
        """A selector for an item of the server."""
        number = self.value(f"[...document.querySelectorAll('#plans li[id]')].find((one) => one.querySelector('span').textContent === {title!r}).id")
        return f"#{number}"

    def equals_the_server(self):
        """Waits until the list is what the server would send now, apart from messages."""
        script = """
            const done = arguments[0];
            fetch('/list').then((answer) => answer.text()).then((markup) => {
              const list = (page) => {
                const copy = page.querySelector('#plans').cloneNode(true);
                for (const problem of copy.querySelectorAll('.problem')) problem.remove();
                return copy.outerHTML;
              };
              const [here, there] = [document, new DOMParser().parseFromString(markup, 'text/html')].map(list);
              done(here === there ? '' : `${here} IS NOT ${there}`);
            });
        """
        until(lambda: self.browser.execute_async_script(script) == "", lambda: self.browser.execute_async_script(script))

    def add(self, title):
        field = self.find("#adds input")
        field.clear()
        field.send_keys(title, Keys.ENTER)

    def an_added_item_stays_once(self):
        self.plan("First")
        # Every number of items with this title that the page has had.
        self.browser.execute_script("""
            window.numbers = new Set();
            const count = () => [...document.querySelectorAll('#plans li')].filter((one) => one.textContent.startsWith('Water')).length;
            new MutationObserver(() => numbers.add(count())).observe(document.querySelector('#plans'), { childList: true, subtree: true });
        """)
        self.hold_requests()
        self.add("Water")
        self.shows(["First", "Water"])
        assert "Water" not in self.server.ask("GET", "/list")[1], "the service was called"
        self.release_requests()
        self.holds("document.querySelectorAll('#plans li[id]').length === 2 && !document.querySelector('#plans .pending')")
        self.equals_the_server()
        self.shows(["First", "Water"])
        assert self.value("[...numbers]") == [1], self.value("[...numbers]")

    def a_refused_item_disappears(self):
        before = self.titles()
        self.hold_requests()
        self.add("Refused")
        self.shows([*before, "Refused"])
        self.release_requests()
        self.holds("document.querySelector('#adds .problem')?.textContent === 'This title is refused.'")
        self.shows(before)
        self.equals_the_server()
        assert self.value("document.querySelector('#adds input').value") == "Refused"

    def an_accepted_change_stays(self):
        item = self.item("Water")
        self.hold_requests()
        self.click(f"{item} .strike")
        self.holds(f"document.querySelector('{item}').classList.contains('done')")
        assert 'class="done"' not in self.server.ask("GET", "/list")[1], "the service was called"
        self.release_requests()
        until(lambda: 'class="done"' in self.server.ask("GET", "/list")[1], "the change has not arrived")
        self.equals_the_server()
        self.holds(f"document.querySelector('{item}').className === 'done'")

    def a_refused_change_is_undone(self):
        self.plan("First", "Locked")
        self.is_refused("strike", lambda item: f"document.querySelector('{item}').classList.contains('done')")

    def a_removed_item_returns_when_refused(self):
        self.is_refused("drop", lambda item: f"document.querySelector('{item}').hidden")

    def is_refused(self, button, is_changed):
        item = self.item("Locked")
        self.hold_requests()
        self.click(f"{item} .{button}")
        self.holds(is_changed(item))
        self.release_requests()
        self.holds(f"document.querySelector('{item} .{button} + .problem')?.textContent === 'The plan is locked.'")
        assert not self.value(is_changed(item))
        self.equals_the_server()

    def a_change_from_elsewhere_does_not_disturb(self):
        self.plan("First")
        before = self.titles()
        self.hold_requests()
        self.add("Mine")
        self.shows([*before, "Mine"])
        self.call("plan", '{"title":"Theirs"}')
        self.holds("[...document.querySelectorAll('#plans li[id]')].some((one) => one.textContent.startsWith('Theirs'))")
        self.release_requests()
        self.shows([*before, "Theirs", "Mine"])
        self.equals_the_server()

    def an_item_is_dragged(self):
        self.arrange("Two", "Three", "One", lambda: self.browser.drag(self.handle("One"), self.handle("Three")))

    def handle(self, title):
        return self.find(f"{self.item(title)} span")

    def an_item_is_moved_by_keys(self):
        def move():
            self.find(self.item("One")).send_keys(Keys.ALT, Keys.ARROW_DOWN)
            until(lambda: self.titles()[-3:] == ["Two", "One", "Three"], self.titles)
            self.focus_is_at("One")
            # The key works again where the focus is, and does nothing at the end.
            self.find(self.item("One")).send_keys(Keys.ALT, Keys.ARROW_DOWN)

        self.arrange("Two", "Three", "One", move)
        self.focus_is_at("One")

    def focus_is_at(self, title):
        focused = self.value("document.activeElement.querySelector('span')?.textContent")
        assert focused == title, focused

    def arrange(self, first, second, third, move):
        """Moves items, and expects an order, here and in a second tab."""
        self.plan("One", "Two", "Three")
        here = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        there = self.browser.current_window_handle
        self.open("/list")
        self.browser.switch_to.window(here)
        move()
        for window in (here, there):
            self.browser.switch_to.window(window)
            until(lambda: self.titles()[-3:] == [first, second, third], self.titles)
            self.equals_the_server()
        self.browser.close()
        self.browser.switch_to.window(here)

    def an_upload_shows_its_progress(self):
        picture = self.site / "picture.png"
        picture.write_bytes(png())
        # The upload stops after its first bytes until the test has seen the progress.
        with Relay(self.server.address, 200_000) as relay:
            self.browser.get(relay.url("/upload"))
            self.find("#picture").send_keys(str(picture))
            self.holds("document.querySelector('#sent').value > 0")
            part = self.value("document.querySelector('#sent').value")
            assert part < 1 and not self.text("#kept"), (part, self.text("#kept"))
            relay.release()
            self.holds("document.querySelector('#kept').textContent")
            assert self.value("document.querySelector('#sent').value") == 1
            size, path = self.text("#kept").split(" ")
            self.holds("document.querySelector('img').complete")
            assert self.value("document.querySelector('img').naturalWidth") == WIDTH
        assert int(size) == picture.stat().st_size, size
        with urllib.request.urlopen(self.server.url(f"/{path}")) as answer:
            assert answer.read() == picture.read_bytes(), "other bytes"
        return f"{int(size) / 1e6:.1f} MB, stopped at {part:.0%}"


def png():
    """A picture that no compression makes smaller, always the same."""
    noise = random.Random(1).randbytes(WIDTH * 3)
    # Each line is different: it begins elsewhere in the noise.
    lines = b"".join(b"\0" + noise[row:] + noise[:row] for row in range(HEIGHT))

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 0)) + chunk(b"IEND", b"")
