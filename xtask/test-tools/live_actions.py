"""Decides what actions and frames must do in real browsers, and what forged ones must not.

usage: live_actions.py PROGRAM

PROGRAM is the example of actions: a list in which each tab chooses what it looks at.
"""

import sys

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import a_browser
from judge import judge
from program import Program, page_holds, until

FORGE = "document.querySelector('[aria-live] form').setAttribute('action', arguments[0])"


class Shelves:
    def __init__(self, program, ada, bo):
        self.program, self.ada, self.bo = program, ada, bo

    def open(self, who):
        who.get(self.program.url())
        page_holds(who, "document.documentElement.dataset.live === 'open'")
        who.execute_script("window.stays = true")

    def put(self, who, thing):
        who.find_element(By.NAME, "name").send_keys(thing, Keys.ENTER)

    def things(self, who):
        return who.execute_script("return [...document.querySelectorAll('[aria-live] li')].map((one) => one.innerText.replace('Take', '').trim())")

    def shows(self, who, things):
        until(lambda: self.things(who) == things, lambda: (things, self.things(who)))

    def choose(self, who, name):
        who.find_element(By.XPATH, f"//button[.='{name}']").click()
        until(lambda: who.execute_script("return document.querySelector('h1')?.textContent") == name, lambda: who.page_source)

    def take(self, who):
        who.find_element(By.CSS_SELECTOR, "[aria-live] button").click()

    def what_a_button_does_is_seen(self):
        self.open(self.ada)
        self.open(self.bo)
        self.put(self.ada, "Flour")
        self.shows(self.bo, ["Flour"])
        self.take(self.bo)
        self.shows(self.ada, [])
        self.shows(self.bo, [])
        assert all(who.execute_script("return window.stays") for who in (self.ada, self.bo)), "a page was loaded again"

    def a_tab_has_its_own_choice(self):
        ada = self.ada
        self.open(ada)
        first = ada.current_window_handle
        self.choose(ada, "Cellar")
        assert ada.execute_script("return window.stays"), "the page was loaded again"
        ada.switch_to.new_window("tab")
        self.open(ada)
        assert ada.find_element(By.TAG_NAME, "h1").text == "Kitchen"
        ada.close()
        ada.switch_to.window(first)
        ada.refresh()
        assert ada.find_element(By.TAG_NAME, "h1").text == "Cellar"
        ada.get("about:blank")
        ada.back()
        page_holds(ada, "document.querySelector('h1').textContent === 'Cellar'")
        self.choose(ada, "Kitchen")

    def what_was_not_given_out_does_nothing(self):
        self.open(self.ada)
        self.open(self.bo)
        self.put(self.ada, "Salt")
        self.shows(self.ada, ["Salt"])
        self.shows(self.bo, ["Salt"])
        forms = "return document.querySelector('[aria-live] form').getAttribute('action')"
        own, others = self.ada.execute_script(forms), self.bo.execute_script(forms)
        assert own != others, own
        middle = len(own) - 12
        changed = own[:middle] + ("A" if own[middle] != "A" else "B") + own[middle + 1 :]
        for forged in [changed, own[:-4], others]:
            self.open(self.ada)
            self.ada.execute_script(FORGE, forged)
            self.take(self.ada)
            page_holds(self.ada, "document.querySelector('[aria-live] [role=alert]')?.textContent")
            told = self.ada.execute_script("return document.querySelector('[aria-live] [role=alert]').textContent")
            assert "may have arrived" not in told, told
        self.open(self.ada)
        assert self.things(self.ada) == ["Salt"], self.things(self.ada)
        self.take(self.ada)
        self.shows(self.bo, [])

    def buttons_outlive_the_server(self):
        self.open(self.ada)
        self.put(self.ada, "Pepper")
        self.shows(self.ada, ["Pepper"])
        address = self.program.address
        self.program.kill()
        self.program.start(address)
        self.take(self.ada)
        self.shows(self.ada, [])

    def buttons_work_without_script(self):
        self.bo.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.bo.get(self.program.url())
            self.put(self.bo, "Thyme")
            until(lambda: "Thyme" in self.bo.page_source, lambda: self.bo.page_source)
            self.take(self.bo)
            until(lambda: "Thyme" not in self.bo.page_source, lambda: self.bo.page_source)
            self.bo.find_element(By.XPATH, "//button[.='Cellar']").click()
            until(lambda: "<h1>Cellar</h1>" in self.bo.page_source, lambda: self.bo.page_source)
        finally:
            self.bo.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def main():
    _, program = sys.argv
    with Program(program) as program, a_browser() as ada, a_browser() as bo:
        shelves = Shelves(program, ada, bo)
        judge([
            ("what a button's action does is seen on all open pages", shelves.what_a_button_does_is_seen),
            ("a tab has its own choice, which reload and Back find again", shelves.a_tab_has_its_own_choice),
            ("an action that is changed, cut short or another visitor's does nothing", shelves.what_was_not_given_out_does_nothing),
            ("the buttons of an open page outlive a server that is killed", shelves.buttons_outlive_the_server),
            ("actions work without script", shelves.buttons_work_without_script),
        ])


if __name__ == "__main__":
    main()
