"""Checks the board over HTTP/2 in a browser.

usage: http2_browser.py PROGRAM

PROGRAM is the board; it runs with a certificate for development.
"""

import sys

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import launch_browser
from checks import run_checks
from network import responses
from program import Program, page_holds

FORUM = "/Garden"
FETCH_TWENTY_TIMES = """
const [done] = arguments;
const script = document.querySelector("script[src]").src;
const texts = Array.from({ length: 20 }, async () => (await fetch(script, { cache: "no-store" })).text());
Promise.all(texts).then((texts) => done(texts.map(({ length }) => length)), (error) => done(String(error)));
"""
PROTOCOLS = """
return ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type))
  .map(({ nextHopProtocol }) => nextHopProtocol)
"""


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
        protocols = self.ada.execute_script(PROTOCOLS)
        assert len(protocols) > 20 and set(protocols) == {"h2"}, protocols
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


def main(program):
    options = ["--tls", "self-signed"]
    with Program(program, *options) as board, launch_browser(True, logs_network=True) as ada, launch_browser(True) as bo:
        checks = Board(board, ada, bo)
        run_checks(
            [
                (
                    "a waiting region and twenty files share one connection of HTTP/2",
                    checks.one_connection_carries_a_waiting_region_and_twenty_files,
                ),
                ("a post reaches another browser over HTTP/2", checks.a_post_reaches_another_browser),
            ]
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
