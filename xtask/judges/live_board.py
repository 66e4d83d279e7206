"""Decides what two people at the message board must see in real browsers, while its server comes and goes.

usage: live_board.py PROGRAM SCREENSHOTS

PROGRAM is the board; it keeps its posts in a folder of this test's own. Leaves screenshots in the folder SCREENSHOTS.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import a_browser
from judge import judge

# A busy machine may need longer than the hundredth of a second that is usual.
PATIENCE = 20


class Board:
    """The program, which can be killed and started again at the same address."""

    def __init__(self, program, folder):
        self.program, self.folder, self.address = program, folder, "127.0.0.1:0"
        self.start()

    def start(self):
        command = [self.program, "--listen", self.address]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if "listening on http://" in line:
                self.address = line.split("http://")[1].split("/")[0].strip()
                return
        raise AssertionError("the board did not start")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def url(self, path="/garden"):
        return f"http://{self.address}{path}"


def holds(browser, expression):
    end = time.monotonic() + PATIENCE
    while not browser.execute_script(f"return Boolean({expression})"):
        assert time.monotonic() < end, f"never: {expression}: {browser.page_source}"
        time.sleep(0.01)


class People:
    def __init__(self, board, ada, bo, screenshots):
        self.board, self.ada, self.bo = board, ada, bo
        self.screenshots = pathlib.Path(screenshots)
        self.screenshots.mkdir(parents=True, exist_ok=True)

    def post(self, who, text):
        who.find_element(By.NAME, "body").send_keys(text, Keys.ENTER)

    def both_open(self):
        for who in (self.ada, self.bo):
            who.get(self.board.url())
            holds(who, "document.documentElement.dataset.live === 'open'")

    def a_post_is_seen_by_the_other(self):
        self.both_open()
        self.bo.execute_script("window.stays = true")
        self.post(self.ada, "Two meters since Monday. <b>")
        holds(self.bo, "document.querySelector('li')?.textContent.startsWith('Two meters since Monday. <b>')")
        holds(self.ada, "document.querySelector('li')")
        holds(self.ada, "document.querySelector('[name=body]').value === ''")
        assert self.bo.execute_script("return window.stays")
        self.bo.save_screenshot(str(self.screenshots / "board-live.png"))

    def what_is_half_written_outlives_the_server(self):
        self.both_open()
        self.bo.execute_script("window.stays = true")
        field = self.bo.find_element(By.NAME, "body")
        field.send_keys("half a sen")
        self.board.kill()
        holds(self.bo, "document.documentElement.dataset.live === 'connecting'")
        self.bo.save_screenshot(str(self.screenshots / "board-away.png"))
        field.send_keys("ten", Keys.ENTER)
        holds(self.bo, "document.querySelector('[role=alert]')")
        self.board.start()
        holds(self.bo, "document.documentElement.dataset.live === 'open'")
        self.ada.get(self.board.url())
        self.post(self.ada, "I am back.")
        holds(self.bo, "[...document.querySelectorAll('li')].some((one) => one.textContent.startsWith('I am back.'))")
        assert self.bo.execute_script("return [window.stays, document.querySelector('[name=body]').value]") == [True, "half a senten"]
        field.send_keys("ce", Keys.ENTER)
        holds(self.ada, "[...document.querySelectorAll('li')].some((one) => one.textContent.startsWith('half a sentence'))")
        assert not self.bo.execute_script("return document.querySelector('[role=alert]')")

    def forms_work_without_script(self):
        self.bo.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.bo.get(self.board.url("/cellar"))
            self.post(self.bo, "Without script.")
            end = time.monotonic() + PATIENCE
            while "Without script." not in self.bo.page_source:
                assert time.monotonic() < end, self.bo.page_source
                time.sleep(0.01)
        finally:
            self.bo.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def what_is_wrong_is_told_at_the_form(self):
        self.bo.get(self.board.url())
        holds(self.bo, "document.documentElement.dataset.live === 'open'")
        self.bo.execute_script("document.querySelector('form').noValidate = true")
        self.bo.find_element(By.TAG_NAME, "button").click()
        holds(self.bo, "document.querySelector('form [role=alert]')?.textContent.includes('must have from 1 to 500 letters')")
        assert self.bo.execute_script("return document.querySelector('h1').textContent") == "garden"


def main():
    _, program, screenshots = sys.argv
    with tempfile.TemporaryDirectory() as folder, a_browser() as ada, a_browser() as bo:
        board = Board(program, folder)
        people = People(board, ada, bo, screenshots)
        try:
            judge([
                ("a post is seen by who looks at the same forum", people.a_post_is_seen_by_the_other),
                ("what is half written outlives a server that is killed", people.what_is_half_written_outlives_the_server),
                ("the board's form works without script", people.forms_work_without_script),
                ("what is wrong with a post is told at its form", people.what_is_wrong_is_told_at_the_form),
            ])
        finally:
            board.kill()


if __name__ == "__main__":
    main()
