"""Decides what pages of other sites, and programs that mean harm, must not get done at the board.

usage: live_strangers.py PROGRAM
"""

import json
import sys

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import a_browser
from foreign import a_foreign_site
from judge import judge
from policy import Strict
from program import Program, page_holds, until

POST = "/board/post"
GOOD = {"forum": "Kitchen", "body": "Harm."}
# What a page may send anywhere without asking.
FORM = """
const form = Object.assign(document.createElement("form"), { method: "post", action: arguments[0] });
for (const [name, value] of Object.entries(arguments[1])) form.append(Object.assign(document.createElement("input"), { name, value }));
document.body.append(form);
form.submit();
"""
SEND = """
const [url, given, done] = arguments;
fetch(url, { method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams(given) }).then(() => done("sent"), done);
"""
# What it may not even send: it is asked first (CORS), and what it gets by a stream is not for its eyes.
ASK = """
const [url, options, done] = arguments;
fetch(url, { credentials: "include", ...options }).then(async (answer) => done(await answer.text()), () => done("refused"));
"""


class Strangers:
    def __init__(self, board, browser):
        self.board, self.browser = board, browser
        self.elsewhere = a_foreign_site()

    def nothing_was_posted(self):
        status, page = self.board.ask("GET", "/Kitchen")
        assert status == 200 and "<li" not in page, page

    def under_a_policy(self):
        strict = Strict(self.board.address)
        browser = self.browser
        browser.get_log("browser")
        browser.get(strict.url("/Garden"))
        page_holds(browser, "document.documentElement.dataset.live === 'open'")
        browser.find_element(By.NAME, "body").send_keys("By the rules.", Keys.ENTER)
        page_holds(browser, "document.querySelector('li')?.textContent.endsWith('By the rules.')")
        page_holds(browser, "document.querySelector('[name=body]').value === ''")
        browser.find_element(By.XPATH, "//button[.='All forums']").click()
        page_holds(browser, "document.querySelector('h1').textContent.startsWith('Forums')")
        page_holds(browser, "document.documentElement.dataset.live === 'open'")
        said = [line["message"] for line in browser.get_log("browser")]
        assert not said, said
        # The policy holds: what it forbids is told.
        browser.execute_script("document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.harm = 1' }))")
        until(lambda: "Content Security Policy" in str(browser.get_log("browser")), "the console tells of the policy")
        assert not browser.execute_script("return window.harm")
        strict.shutdown()

    def from_another_site(self):
        browser = self.browser
        # Whoever is harmed has a session here.
        browser.get(self.board.url())
        browser.get(self.elsewhere)
        assert browser.execute_async_script(SEND, self.board.url(POST), GOOD) == "sent"
        with_json = {"method": "POST", "headers": {"Content-Type": "application/json"}, "body": json.dumps(GOOD)}
        assert browser.execute_async_script(ASK, self.board.url(POST), with_json) == "refused"
        stream = self.board.url("/_bine/live?page=/&have=0.0000000000000000")
        assert browser.execute_async_script(ASK, stream, {}) == "refused"
        browser.execute_script(FORM, self.board.url(POST), GOOD)
        until(lambda: "A page of another site may not" in browser.page_source, lambda: browser.page_source)
        self.nothing_was_posted()

    def by_what_they_say(self):
        for fields in [
            {"Origin": "http://foe.example"},
            {"Origin": "null"},
            {"Sec_Fetch_Site": "cross-site"},
            {"Sec_Fetch_Site": "same-site"},
            {"Cookie": "session=x"},
        ]:
            for kind in ("application/json", "text/plain"):
                told = self.board.ask("POST", POST, json.dumps(GOOD), Content_Type=kind, **fields)
                assert told[0] == 403, (fields, told)
        assert self.board.ask("GET", "/_bine/live?page=/", Origin="http://foe.example")[0] == 403
        self.nothing_was_posted()

    def by_what_they_send(self):
        good = json.dumps(GOOD)
        with_more = lambda more: f"{good[:-1]}, {more}}}"
        for status, body in [
            (400, with_more('"__proto__": {"a": 1}')),
            (400, with_more('"constructor": {"prototype": {"a": 1}}')),
            (400, with_more('"body": "Twice."')),
            (400, '{"forum": "Kitchen", "body": {"__proto__": 1}}'),
            (400, "[" * 1_000_000),
            (400, with_more('"more": ' + "[" * 100_000 + "]" * 100_000)),
            (400, with_more('"more": ' + '{"a":' * 1000 + "1" + "}" * 1000)),
            (400, "{" + ", ".join(f'"{number}": 1' for number in range(20_000)) + "}"),
        ]:
            told = self.board.ask("POST", POST, body, Content_Type="application/json")
            assert told[0] == status, (body[:100], told)
        told = self.board.ask("POST", POST, Content_Type="application/json", Content_Length=str(1 << 40))
        assert told[0] == 413, told
        form = "application/x-www-form-urlencoded"
        told = self.board.ask("POST", POST, "forum=Kitchen&body=Harm.&__proto__[a]=1", Content_Type=form)
        assert told[0] == 400, told
        self.nothing_was_posted()


def main():
    _, program = sys.argv
    with Program(program) as board, a_browser() as browser:
        strangers = Strangers(board, browser)
        judge([
            ("the board lives under the policy default-src 'self', and its console is empty", strangers.under_a_policy),
            ("a page of another site posts nothing and follows nothing", strangers.from_another_site),
            ("what names another origin, or brings cookies and names none, is refused", strangers.by_what_they_say),
            ("prototype keys, depth bombs and too much of anything are refused", strangers.by_what_they_send),
        ])


if __name__ == "__main__":
    main()
