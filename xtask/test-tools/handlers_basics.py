"""Checks of single handlers: events, captured values, regions, the history, and changed files."""

import json

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from handlers_page import Page
from program import replace_text, until

ATTACK = "\"'><img src=x onerror=\"document.title='attacked'\"><script>document.title='attacked'</script>"
# The text in `texts.tsx`.
CONSTANT = "</script>\u2028\u2029'\"`${1}\\u0022<!--\ud800"
WORDS = [
    ATTACK,
    "</script><script>document.title='attacked'</script>",
    "</button></li><iframe srcdoc=\"<script>parent.document.title='attacked'</script>\">",
    "\" onclick=\"document.title='attacked'\" x=\"",
    "' data-on='click: call /say text=attacked' data-with='",
    "click: call /say text=attacked; toggle #shown",
    "]); document.title='attacked'; ([",
    "\\\"]; document.title='attacked'; //",
    "${document.title='attacked'}`+(document.title='attacked')+`",
    "javascript:document.title='attacked'",
    "<!--<script>-->]]><![CDATA[&quot;&#39;&lt;&amp;",
    "__proto__",
    "constructor",
    "\u2028\u2029\u0085\ufeff\u200b",
    "a\tb\u0001\u001f\u007f",
    "\U0001f989 e\u0301 \u202eright to left",
]


class Basics(Page):
    def checks(self):
        return [
            ("a handler counts every click", self.a_counter_counts_every_click),
            ("handlers are one module, requested at the first use", self.the_module_is_requested_once),
            ("an event passes from the inner element to the outer one until it is stopped", self.an_event_passes_from_the_inner_element_to_the_outer_one),
            ("captured values are text, whatever they contain", self.captured_values_are_text),
            ("texts of visitors in content, attributes and captured values change nothing", self.texts_of_visitors_change_nothing),
            ("a constant reaches the browser unchanged, also half a character", self.a_constant_is_unchanged),
            ("the page and its handlers check a form by the same function", self.a_function_checks_input_on_both_sides),
            ("the refusal of a service is shown at the element of the handler", self.a_refusal_is_shown_at_its_element),
            ("handlers of a patched region work", self.a_handler_of_a_patched_region_works),
            ("a handler continues while its page is patched", self.a_handler_continues_while_its_page_is_patched),
            ("a handler decides about its event, also after Back", self.a_handler_decides_about_its_event),
            ("handlers work after Back and Forward between documents", self.handlers_work_after_back_and_forward),
            ("handlers work after a form has replaced the page, and after Back and Forward", self.handlers_work_after_a_form_has_replaced_the_page),
            ("a changed file changes handlers of an open page", self.a_changed_file_reaches_handlers_of_an_open_page),
        ]

    def modules(self):
        """The number of modules of the browser that were requested."""
        names = self.value("performance.getEntriesByType('resource').map((one) => one.name)")
        return len([name for name in names if "/_js/" in name])

    def a_counter_counts_every_click(self):
        self.open()
        for _ in range(3):
            self.click("#count")
        self.counts(3)

    def counts(self, number):
        self.holds(f"document.querySelector('#count').textContent === '{number}'")

    def the_module_is_requested_once(self):
        # Twice: the page's module, and the file that it imports.
        assert self.modules() == 2, self.modules()

    def an_event_passes_from_the_inner_element_to_the_outer_one(self):
        self.click("#passes")
        self.holds("document.title === 'inner outer'")
        self.click("#stops")
        self.holds("document.title === 'inner'")

    def captured_values_are_text(self):
        words = self.browser.find_elements(By.CSS_SELECTOR, ".word")
        words[0].click()
        self.shows("0 first")
        words[1].click()
        self.shows(f"1 {ATTACK}")
        self.click("#attack")
        self.shows(ATTACK)
        assert self.browser.title != "attacked", self.browser.title

    def shows(self, text):
        until(lambda: self.text("#shown") == text, lambda: f"{text!r}: {self.text('#shown')!r}")

    def texts_of_visitors_change_nothing(self):
        for word in WORDS:
            status, answer = self.call("say", json.dumps({"text": word}))
            assert status == 200, (word, answer)
        # No text of the server has half a character.
        status, answer = self.call("say", '{"text":"\\ud800"}')
        assert status == 400, answer
        self.open("/texts")
        elements = self.value("document.querySelectorAll('main *').length")
        buttons = self.browser.find_elements(By.CSS_SELECTOR, "li > button:not(.nested)")
        nested = self.browser.find_elements(By.CSS_SELECTOR, "li > .nested")
        assert len(buttons) == len(nested) == len(WORDS), len(buttons)
        for word, button, nested in zip(WORDS, buttons, nested):
            attributes = self.browser.execute_script("return [...arguments[0].attributes].map((one) => [one.name, one.value])", button)
            assert [name for name, _ in attributes] == ["type", "title", "aria-label", "data-on", "data-with"], attributes
            assert dict(attributes)["title"] == word, attributes
            assert dict(attributes)["aria-label"] == f"Shows {word}", attributes
            button.click()
            self.shows(word)
            nested.click()
            self.shows(f"{word}\n{word}")
        assert self.browser.title != "attacked", self.browser.title
        assert self.value("document.querySelectorAll('main *').length") == elements
        assert self.value("document.querySelectorAll('li').length") == len(WORDS)

    def a_constant_is_unchanged(self):
        self.click("#constant")
        until(lambda: self.browser.title.startswith('"'), lambda: self.browser.title)
        assert json.loads(self.value("document.title")) == CONSTANT, self.browser.title

    def a_function_checks_input_on_both_sides(self):
        self.open()
        field = self.browser.find_element(By.NAME, "title")
        field.send_keys("a title that is much too long")
        self.holds("document.querySelector('[name=title]').classList.contains('wrong')")
        field.send_keys(Keys.ENTER)
        self.shows("9 characters too long.")
        assert not self.value("document.body.dataset.added"), "the form was sent"
        field.clear()
        field.send_keys("Water", Keys.ENTER)
        self.holds("document.body.dataset.added === 'yes'")
        self.holds("document.querySelectorAll('li').length === 1")
        # A request that no browser has checked.
        status, answer = self.call("add", '{"title":"a title that is much too long"}')
        assert status == 422 and "The browser let this pass." in answer, answer

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
        self.call("add", '{"title":"From elsewhere"}')
        self.holds("document.querySelectorAll('li').length === 1")
        self.browser.execute_script("go()")
        self.holds("document.title === 'waited'")

    def a_handler_decides_about_its_event(self):
        self.open()
        # At once after the page was loaded: the module may not have arrived.
        self.click("#link")
        self.is_at("/")
        self.click("#count")
        self.counts(1)
        self.browser.execute_script("document.body.dataset.leave = 'yes'")
        self.click("#link")
        self.is_at("/other")
        self.click("#here")
        self.holds("document.title === 'here'")
        self.browser.back()
        self.is_at("/")
        self.a_click_counts()

    def a_click_counts(self):
        before = int(self.text("#count"))
        self.click("#count")
        self.counts(before + 1)

    def handlers_work_after_back_and_forward(self):
        self.open()
        self.a_click_counts()
        self.open("/list")
        self.browser.back()
        self.is_at("/")
        self.a_click_counts()
        self.a_region_is_patched()
        self.browser.forward()
        self.is_at("/list")
        self.find("#adds input").send_keys("Forward", Keys.ENTER)
        self.holds("document.querySelector('#plans li[id]')?.textContent.includes('Forward')")
        self.browser.back()
        self.is_at("/")
        self.a_click_counts()

    def a_region_is_patched(self):
        """A change from elsewhere arrives, and its handlers work."""
        before = self.value("document.querySelectorAll('li').length")
        self.call("add", '{"title":"From elsewhere"}')
        self.holds(f"document.querySelectorAll('li').length === {before + 1}")
        self.click("li:last-of-type input")
        self.holds("document.querySelector('li:last-of-type').className === 'done'")
        self.click("li:last-of-type .remove")
        self.holds(f"document.querySelectorAll('li').length === {before}")

    def handlers_work_after_a_form_has_replaced_the_page(self):
        self.open()
        self.browser.execute_script("window.isSame = true")
        self.click("#away")
        self.is_at("/other")
        self.click("#here")
        self.holds("document.title === 'here'")
        self.browser.back()
        self.is_at("/")
        self.holds("document.querySelector('#count')")
        self.a_click_counts()
        self.a_region_is_patched()
        self.browser.forward()
        self.is_at("/other")
        self.holds("document.querySelector('#here')")
        self.click("#here")
        self.holds("document.title === 'here'")
        assert self.value("window.isSame"), "the browser has loaded a document"

    def a_changed_file_reaches_handlers_of_an_open_page(self):
        self.open()
        before = self.value("document.querySelector('#count').dataset.on")
        page = self.site / "index.tsx"
        replace_text(page, page.read_text().replace("Number(button.textContent) + 1", "Number(button.textContent) + 10"))
        self.holds(f"document.querySelector('#count').dataset.on !== '{before}'")
        self.click("#count")
        self.counts(10)
