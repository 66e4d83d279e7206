"""Checks that pages of foreign sites, and malicious programs, cannot post to the board.

usage: live_strangers.py PROGRAM
"""

import json
import sys

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import launch_browser
from foreign import start_foreign_site
from checks import run_checks
from policy import PolicyProxy
from program import Program, page_holds, until

POST = "/board/post"
GOOD = {"forum": "Kitchen", "body": "Harm."}
# Requests that a page may send to any site without a preflight.
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
# Requests that need a CORS preflight, and a stream whose response a foreign page must not read.
ASK = """
const [url, options, done] = arguments;
fetch(url, { credentials: "include", ...options }).then(async (answer) => done(await answer.text()), () => done("refused"));
"""


class Attacks:
    def __init__(self, board, browser):
        self.board, self.browser = board, browser
        self.elsewhere = start_foreign_site()

    def assert_no_post(self):
        status, page = self.board.ask("GET", "/Kitchen")
        assert status == 200 and "<li" not in page, page

    def works_under_a_policy(self):
        proxy = PolicyProxy(self.board.address)
        browser = self.browser
        browser.get_log("browser")
        browser.get(proxy.url("/Garden"))
        page_holds(browser, "document.documentElement.dataset.live === 'open'")
        browser.find_element(By.NAME, "body").send_keys("By the rules.", Keys.ENTER)
        page_holds(browser, "document.querySelector('li')?.textContent.endsWith('By the rules.')")
        page_holds(browser, "document.querySelector('[name=body]').value === ''")
        browser.find_element(By.XPATH, "//button[.='All forums']").click()
        page_holds(browser, "document.querySelector('h1').textContent.startsWith('Forums')")
        page_holds(browser, "document.documentElement.dataset.live === 'open'")
        messages = [line["message"] for line in browser.get_log("browser")]
        assert not messages, messages
        # The policy is in force: the console reports a violation.
        browser.execute_script("document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.harm = 1' }))")
        until(lambda: "Content Security Policy" in str(browser.get_log("browser")), "the console reports the violation")
        assert not browser.execute_script("return window.harm")
        proxy.shutdown()

    def rejects_foreign_pages(self):
        browser = self.browser
        # The victim has a session here.
        browser.get(self.board.url())
        browser.get(self.elsewhere)
        assert browser.execute_async_script(SEND, self.board.url(POST), GOOD) == "sent"
        with_json = {"method": "POST", "headers": {"Content-Type": "application/json"}, "body": json.dumps(GOOD)}
        assert browser.execute_async_script(ASK, self.board.url(POST), with_json) == "refused"
        stream = self.board.url("/_bine/live?page=/&have=0.0000000000000000")
        assert browser.execute_async_script(ASK, stream, {}) == "refused"
        browser.execute_script(FORM, self.board.url(POST), GOOD)
        until(lambda: "A page of another site may not" in browser.page_source, lambda: browser.page_source)
        self.assert_no_post()

    def rejects_foreign_headers(self):
        for fields in [
            {"Origin": "http://foe.example"},
            {"Origin": "null"},
            {"Sec_Fetch_Site": "cross-site"},
            {"Sec_Fetch_Site": "same-site"},
            {"Cookie": "session=x"},
        ]:
            for kind in ("application/json", "text/plain"):
                response = self.board.ask("POST", POST, json.dumps(GOOD), Content_Type=kind, **fields)
                assert response[0] == 403, (fields, response)
        assert self.board.ask("GET", "/_bine/live?page=/", Origin="http://foe.example")[0] == 403
        self.assert_no_post()

    def rejects_malicious_bodies(self):
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
            response = self.board.ask("POST", POST, body, Content_Type="application/json")
            assert response[0] == status, (body[:100], response)
        response = self.board.ask("POST", POST, Content_Type="application/json", Content_Length=str(1 << 40))
        assert response[0] == 413, response
        form = "application/x-www-form-urlencoded"
        response = self.board.ask("POST", POST, "forum=Kitchen&body=Harm.&__proto__[a]=1", Content_Type=form)
        assert response[0] == 400, response
        self.assert_no_post()


def main():
    _, program = sys.argv
    with Program(program) as board, launch_browser() as browser:
        attacks = Attacks(board, browser)
        run_checks([
            ("the board works under the policy default-src 'self' without console messages", attacks.works_under_a_policy),
            ("a page of a foreign site can neither post nor subscribe", attacks.rejects_foreign_pages),
            ("requests with a foreign origin, or with cookies and no origin, are rejected", attacks.rejects_foreign_headers),
            ("prototype keys, deep nesting and oversized bodies are rejected", attacks.rejects_malicious_bodies),
        ])


if __name__ == "__main__":
    main()
