"""Checks handlers of TSX pages, which run in the browser.

usage: script_handlers.py BINE SITE

BINE is the program, and SITE the folder of the application.
"""

import pathlib
import shutil
import sys
import tempfile

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import launch_browser
from checks import run_checks
from program import Program, page_holds, until


class Page:
    """A browser at the application."""

    def __init__(self, server, site, browser):
        self.server, self.site, self.browser = server, site, browser

    def open(self):
        self.browser.get(self.server.url())
        page_holds(self.browser, "document.documentElement.dataset.live === 'open'")

    def click(self, selector):
        self.browser.find_element(By.CSS_SELECTOR, selector).click()

    def holds(self, expression):
        page_holds(self.browser, expression)

    def text(self, selector):
        return self.browser.execute_script("return document.querySelector(arguments[0]).textContent", selector)

    def modules(self):
        """The number of modules of the browser that were requested."""
        names = "return performance.getEntriesByType('resource').map((one) => one.name)"
        return len([name for name in self.browser.execute_script(names) if "/_js/" in name])

    def a_counter_counts_every_click(self):
        self.open()
        for _ in range(3):
            self.click("#count")
        self.holds("document.querySelector('#count').textContent === '3'")

    def the_module_is_requested_once(self):
        # Twice: the page's module, and the file that it imports.
        assert self.modules() == 2, self.modules()

    def an_event_passes_from_the_inner_element_to_the_outer_one(self):
        self.click("#passes")
        self.holds("document.title === 'inner outer'")
        self.click("#stops")
        self.holds("document.title === 'inner'")

    def captured_values_are_text(self):
        attack = "\"'><img src=x onerror=\"document.title='attacked'\"><script>document.title='attacked'</script>"
        self.browser.find_elements(By.CSS_SELECTOR, ".word")[0].click()
        self.holds("document.querySelector('#shown').textContent === '0 first'")
        self.browser.find_elements(By.CSS_SELECTOR, ".word")[1].click()
        until(lambda: self.text("#shown") == f"1 {attack}", lambda: self.text("#shown"))
        self.click("#attack")
        until(lambda: self.text("#shown") == attack, lambda: self.text("#shown"))
        assert self.browser.title != "attacked", self.browser.title

    def a_function_checks_input_on_both_sides(self):
        field = self.browser.find_element(By.NAME, "title")
        field.send_keys("a title that is much too long")
        self.holds("document.querySelector('[name=title]').classList.contains('wrong')")
        field.send_keys(Keys.ENTER)
        self.holds("document.querySelector('#shown').textContent === '9 characters too long.'")
        assert not self.browser.execute_script("return document.body.dataset.added"), "the form was sent"
        field.clear()
        field.send_keys("Water", Keys.ENTER)
        self.holds("document.body.dataset.added === 'yes'")
        self.holds("document.querySelectorAll('li').length === 1")
        answer = self.server.ask("POST", "/add", '{"title":"a title that is much too long"}', Content_Type="application/json", Accept="application/json")
        assert answer[0] == 422, answer

    def a_refusal_is_shown_at_its_element(self):
        self.click("li .remove")
        self.holds("document.querySelector('li .problem')?.textContent === 'Complete the task first.'")
        self.holds("!document.querySelector('li').classList.contains('removing')")

    def a_handler_of_a_patched_region_works(self):
        self.click("li input")
        self.holds("document.querySelector('li').className === 'done'")
        # The patch has not removed the message, and the next attempt does.
        self.click("li .remove")
        self.holds("document.querySelectorAll('li').length === 0")

    def a_handler_continues_while_its_page_is_patched(self):
        self.click("#wait")
        self.holds("typeof go === 'function'")
        self.server.ask("POST", "/add", '{"title":"From elsewhere"}', Content_Type="application/json")
        self.holds("document.querySelectorAll('li').length === 1")
        self.browser.execute_script("go()")
        self.holds("document.title === 'waited'")

    def a_handler_decides_about_its_event(self):
        self.open()
        # At once after the page was loaded: the module may not have arrived.
        self.click("#link")
        assert self.browser.current_url == self.server.url(), self.browser.current_url
        self.click("#count")
        self.holds("document.querySelector('#count').textContent === '1'")
        self.browser.execute_script("document.body.dataset.leave = 'yes'")
        self.click("#link")
        until(lambda: self.browser.current_url.endswith("/other"), self.browser.current_url)
        self.click("#here")
        self.holds("document.title === 'here'")
        self.browser.back()
        until(lambda: self.browser.current_url == self.server.url(), self.browser.current_url)
        before = int(self.text("#count"))
        self.click("#count")
        self.holds(f"document.querySelector('#count').textContent === '{before + 1}'")

    def a_changed_file_reaches_handlers_of_an_open_page(self):
        page = self.site / "index.tsx"
        page.write_text(page.read_text().replace("Number(button.textContent) + 1", "Number(button.textContent) + 10"))
        self.open()
        until(lambda: "/_js/" in self.server.ask("GET", "/")[1], "no page")
        self.click("#count")
        self.holds("document.querySelector('#count').textContent === '10'")

    def the_policy_was_not_violated(self):
        entries = [one["message"] for one in self.browser.get_log("browser")]
        # The refusal of a service, and the icon that the site does not have.
        entries = [one for one in entries if "/remove" not in one and "/favicon.ico" not in one]
        assert not entries, entries
        policy = self.browser.execute_async_script(
            "fetch('/').then((answer) => arguments[0](answer.headers.get('Content-Security-Policy')))"
        )
        assert "script-src 'self'" in policy or "default-src 'self'" in policy, policy

    def a_module_that_cannot_be_loaded_is_reported(self):
        # No handler of this page decides about its event, so its module is requested at the first use.
        self.browser.get(self.server.url("/late"))
        self.server.kill()
        self.click("#late")
        self.holds("document.querySelector('.problem')?.textContent.includes('could not be loaded')")


def main(bine, source):
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder, "site")
        shutil.copytree(source, site)
        with Program(bine, "--development", "on", words=("serve", str(site))) as server, launch_browser() as browser:
            page = Page(server, site, browser)
            run_checks([
                ("a handler counts every click", page.a_counter_counts_every_click),
                ("handlers are one module, requested at the first use", page.the_module_is_requested_once),
                ("an event passes from the inner element to the outer one until it is stopped", page.an_event_passes_from_the_inner_element_to_the_outer_one),
                ("captured values are text, whatever they contain", page.captured_values_are_text),
                ("the page and its handlers check a form by the same function", page.a_function_checks_input_on_both_sides),
                ("the refusal of a service is shown at the element of the handler", page.a_refusal_is_shown_at_its_element),
                ("handlers of a patched region work", page.a_handler_of_a_patched_region_works),
                ("a handler continues while its page is patched", page.a_handler_continues_while_its_page_is_patched),
                ("a handler decides about its event, also after Back", page.a_handler_decides_about_its_event),
                ("a changed file changes handlers", page.a_changed_file_reaches_handlers_of_an_open_page),
                ("handlers keep to the content security policy", page.the_policy_was_not_violated),
                ("a handler that cannot be loaded is reported at its element", page.a_module_that_cannot_be_loaded_is_reported),
            ])


if __name__ == "__main__":
    main(*sys.argv[1:])
