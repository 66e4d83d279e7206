"""Checks actions and frames in two browsers, and that forged actions fail.

usage: live_actions.py PROGRAM

PROGRAM is the example of actions: a list in which each tab has its own selection.
"""

import sys

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import launch_browser
from checks import run_checks
from program import Program, page_holds, until

FORGE = "document.querySelector('[aria-live] form').setAttribute('action', arguments[0])"


class Shelves:
    def __init__(self, program, ada, bo):
        self.program, self.ada, self.bo = program, ada, bo

    def open(self, browser):
        browser.get(self.program.url())
        page_holds(browser, "document.documentElement.dataset.live === 'open'")
        browser.execute_script("window.stays = true")

    def put(self, browser, thing):
        browser.find_element(By.NAME, "name").send_keys(thing, Keys.ENTER)

    def things(self, browser):
        return browser.execute_script("return [...document.querySelectorAll('[aria-live] li')].map((one) => one.innerText.replace('Take', '').trim())")

    def shows(self, browser, things):
        until(lambda: self.things(browser) == things, lambda: (things, self.things(browser)))

    def choose(self, browser, name):
        browser.find_element(By.XPATH, f"//button[.='{name}']").click()
        until(lambda: browser.execute_script("return document.querySelector('h1')?.textContent") == name, lambda: browser.page_source)

    def take(self, browser):
        browser.find_element(By.CSS_SELECTOR, "[aria-live] button").click()

    def an_action_updates_all_pages(self):
        self.open(self.ada)
        self.open(self.bo)
        self.put(self.ada, "Flour")
        self.shows(self.bo, ["Flour"])
        self.take(self.bo)
        self.shows(self.ada, [])
        self.shows(self.bo, [])
        assert all(browser.execute_script("return window.stays") for browser in (self.ada, self.bo)), "a page was loaded again"

    def each_tab_has_its_own_frame(self):
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

    def forged_actions_fail(self):
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
            problem = self.ada.execute_script("return document.querySelector('[aria-live] [role=alert]').textContent")
            assert "may have arrived" not in problem, problem
        self.open(self.ada)
        assert self.things(self.ada) == ["Salt"], self.things(self.ada)
        self.take(self.ada)
        self.shows(self.bo, [])

    def actions_survive_a_restart(self):
        self.open(self.ada)
        self.put(self.ada, "Pepper")
        self.shows(self.ada, ["Pepper"])
        address = self.program.address
        self.program.kill()
        self.program.start(address)
        self.take(self.ada)
        self.shows(self.ada, [])

    def actions_work_without_script(self):
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

    def rejected_form_comes_back_without_script(self):
        self.bo.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.bo.get(self.program.url())
            # The browser itself would not send such a name.
            root = self.bo.execute_cdp_cmd("DOM.getDocument", {})["root"]["nodeId"]
            field = self.bo.execute_cdp_cmd("DOM.querySelector", {"nodeId": root, "selector": "[name=name]"})
            self.bo.execute_cdp_cmd("DOM.removeAttribute", {**field, "name": "maxlength"})
            self.put(self.bo, "x" * 80 + '"<')
            until(lambda: "aria-invalid" in self.bo.page_source, lambda: self.bo.page_source)
            field, note = (self.bo.find_element(By.CSS_SELECTOR, one) for one in ["[name=name]", "#put .problem"])
            assert field.get_dom_attribute("value") == "x" * 80 + '"<', self.bo.page_source
            assert field.get_dom_attribute("aria-describedby") == note.get_dom_attribute("id"), self.bo.page_source
            assert "must have from 1 to 80 letters, not 82" in self.bo.page_source, self.bo.page_source
            assert self.bo.switch_to.active_element == field
            field.clear()
            field.send_keys("Salt", Keys.ENTER)
            until(lambda: "Salt" in self.bo.page_source, lambda: self.bo.page_source)
            assert "problem" not in self.bo.page_source, self.bo.page_source
        finally:
            self.bo.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def main():
    _, program = sys.argv
    with Program(program) as program, launch_browser() as ada, launch_browser() as bo:
        shelves = Shelves(program, ada, bo)
        run_checks([
            ("an action updates all open pages", shelves.an_action_updates_all_pages),
            ("each tab has its own frame, which survives reload and Back", shelves.each_tab_has_its_own_frame),
            ("an action that is changed, truncated or of a different user fails", shelves.forged_actions_fail),
            ("the actions of an open page survive a crash of the server", shelves.actions_survive_a_restart),
            ("actions work without script", shelves.actions_work_without_script),
            ("a rejected form comes back without script", shelves.rejected_form_comes_back_without_script),
        ])


if __name__ == "__main__":
    main()
