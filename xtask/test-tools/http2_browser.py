"""Checks the board over HTTP/2 in Chromium and Firefox.

usage: http2_browser.py PROGRAM

PROGRAM is the board; it runs with a certificate for development.
"""

import pathlib
import sys

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import launch_browser
from checks import run_checks
from firefox import launch_firefox
from network import responses
from program import Program, page_holds, until

FORUM = "/Garden"
FETCH_TWENTY_TIMES = """
const [done] = arguments;
const script = document.querySelector("script[src]").src;
const texts = Array.from({ length: 20 }, async () => (await fetch(script, { cache: "no-store" })).text());
Promise.all(texts).then((texts) => done(texts.map(({ length }) => length)), (error) => done(String(error)));
"""
# The protocol of each response, and whether it needed a connection of its own.
RESPONSES = """
return ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type))
  .map(({ nextHopProtocol, connectStart, connectEnd }) => [nextHopProtocol, connectEnd > connectStart])
"""
ESTABLISHED = "01"


def connections_to(port):
    """The number of open connections to a port of this machine, by the table of the kernel."""
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(state == ESTABLISHED and int(remote.split(":")[1], 16) == port for _, _, remote, state, *_ in rows)


class Board:
    def __init__(self, board, ada, bo):
        self.board, self.ada, self.bo = board, ada, bo

    def open(self, browser):
        browser.get(self.board.url(FORUM))
        page_holds(browser, "document.documentElement.dataset.live === 'open'")

    def one_connection_carries_a_waiting_region_and_twenty_files(self):
        self.open(self.ada)
        lengths = self.ada.execute_async_script(FETCH_TWENTY_TIMES)
        assert len(lengths) == 20 and set(lengths) == {lengths[0]} and lengths[0] > 1000, lengths
        # The region waits in a response that is not complete, so it has no entry.
        entries = self.ada.execute_script(RESPONSES)
        assert len(entries) > 20 and {protocol for protocol, _ in entries} == {"h2"}, entries
        assert sum(connects for _, connects in entries) <= 1, entries
        port = int(self.board.address.split(":")[1])
        until(lambda: connections_to(port) == 1, lambda: f"{connections_to(port)} connections")
        if self.ada.name == "firefox":
            return
        answers = responses(self.ada)
        assert len(answers) > 20, answers
        assert {answer["protocol"] for answer in answers} == {"h2"}, answers
        assert len({answer["connectionId"] for answer in answers}) == 1, answers

    def a_post_reaches_another_browser(self):
        self.open(self.ada)
        self.open(self.bo)
        self.ada.find_element(By.NAME, "body").send_keys("over one connection", Keys.ENTER)
        for browser in [self.ada, self.bo]:
            page_holds(
                browser,
                "[...document.querySelectorAll('li')].some((one) => one.textContent.endsWith('over one connection'))",
            )


    def checks(self, name):
        return [
            (
                f"a waiting region and twenty files share one connection of HTTP/2 in {name}",
                self.one_connection_carries_a_waiting_region_and_twenty_files,
            ),
            (f"a post of {name} reaches another browser over HTTP/2", self.a_post_reaches_another_browser),
        ]


def main(program):
    options = ["--tls", "self-signed"]
    with (
        Program(program, *options) as board,
        Program(program, *options) as other_board,
        launch_browser(True, logs_network=True) as chromium,
        launch_browser(True) as second,
        launch_firefox(True) as firefox,
    ):
        checks = Board(board, chromium, second).checks("Chromium")
        run_checks(checks + Board(other_board, firefox, second).checks("Firefox"))


if __name__ == "__main__":
    main(*sys.argv[1:])
