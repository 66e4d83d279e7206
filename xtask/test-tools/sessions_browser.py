"""Checks the session cookie in browsers.

usage: sessions_browser.py URL SECURE_URL

Both are the example of sessions, without TLS and with a self-signed certificate.
"""

import sys
import time

from selenium.webdriver.common.by import By

from browser import launch_browser
from foreign import start_foreign_site
from checks import run_checks
from program import until

# A request that a foreign page may send without a preflight.
FORM = """
const form = Object.assign(document.createElement("form"), { method: "post", action: arguments[0] });
form.append(Object.assign(document.createElement("input"), { name: "user", value: "foe" }));
document.body.append(form);
form.submit();
"""
FETCH = """
const [url, done] = arguments;
fetch(url, { method: "POST", mode: "no-cors", credentials: "include" }).then(() => done(""), (error) => done(String(error)));
"""


class Visitor:
    """One browser at the example."""

    def __init__(self, browser, url, cookie="session"):
        self.browser, self.url, self.name = browser, url, cookie

    def open(self):
        self.browser.get(self.url)

    def text(self):
        return self.browser.execute_script("return document.body?.innerText ?? ''")

    def cookie(self):
        return self.browser.get_cookie(self.name)

    def heading(self):
        return self.browser.find_element(By.TAG_NAME, "h1").text

    def shows(self, text):
        """Waits until the page contains this text."""
        until(lambda: text in self.text(), lambda: f"{text}: {self.text()}")

    def is_out(self):
        """Waits until no user is logged in."""
        until(lambda: "is logged in" not in self.text(), self.text)

    def press(self, name):
        self.browser.find_element(By.XPATH, f"//button[normalize-space()='{name}']").click()

    def log_in(self, user):
        self.open()
        self.browser.find_element(By.NAME, "user").send_keys(user)
        self.press("Log in")
        self.shows(f"{user} is logged in")


def logs_in_and_rotates(visitor):
    visitor.open()
    before, name = visitor.cookie(), visitor.heading()
    visitor.log_in("ann")
    after = visitor.cookie()
    assert before["value"] != after["value"], "the cookie did not change at login"
    assert visitor.heading() == name, "the generated name changed"
    assert after["httpOnly"] and after["sameSite"] == "Lax" and after["path"] == "/", after
    assert "session" not in visitor.browser.execute_script("return document.cookie"), "a script can read it"
    # The cookie from before the login is restored, as a session fixation attack would do.
    visitor.browser.add_cookie({"name": visitor.name, "value": before["value"], "httpOnly": True})
    visitor.open()
    assert "is logged in" not in visitor.text(), visitor.text()
    visitor.browser.delete_all_cookies()


def logs_out_elsewhere(visitor, other):
    visitor.log_in("ben")
    other.log_in("ben")
    # From here on, no page is reloaded.
    name = other.heading()
    other.browser.execute_script("window.stays = true")
    visitor.shows("ben is logged in 2 times.")
    began = time.monotonic()
    visitor.press("Log out everywhere else")
    other.is_out()
    took = time.monotonic() - began
    # The part outside the region was rendered for ben too.
    until(lambda: other.heading() != name, other.text)
    assert other.browser.execute_script("return window.stays"), "the page was loaded again"
    visitor.shows("ben is logged in 1 times.")
    visitor.press("Log out")
    visitor.is_out()
    return f"{1000 * took:.0f} ms from the button to the other page"


def logs_out_in_another_tab(visitor):
    browser = visitor.browser
    visitor.log_in("cay")
    first = browser.current_window_handle
    visitor.press("Dark")
    visitor.shows("The theme is dark")
    browser.switch_to.new_window("tab")
    visitor.open()
    visitor.shows("cay is logged in 1 times.")
    visitor.press("Log out")
    visitor.is_out()
    browser.close()
    browser.switch_to.window(first)
    visitor.is_out()


def hides_the_page_from_back(visitor):
    browser = visitor.browser
    visitor.log_in("dee")
    first = browser.current_window_handle
    browser.execute_script("window.stays = true")
    browser.get("about:blank")
    browser.switch_to.new_window("tab")
    visitor.open()
    visitor.press("Log out")
    visitor.is_out()
    browser.close()
    browser.switch_to.window(first)
    browser.back()
    until(lambda: "Hello" in visitor.text(), visitor.text)
    assert "dee" not in visitor.text(), visitor.text()


def rejects_foreign_logins(visitor):
    elsewhere = start_foreign_site()
    visitor.browser.delete_all_cookies()
    visitor.browser.get(elsewhere)
    visitor.browser.execute_script(FORM, visitor.url + "login")
    refused = "A page of another site may not send this here."
    visitor.shows(refused)
    visitor.open()
    assert "is logged in" not in visitor.text(), visitor.text()
    visitor.log_in("ann")
    visitor.browser.get(elsewhere)
    wrong = visitor.browser.execute_async_script(FETCH, visitor.url + "logout")
    assert not wrong, wrong
    visitor.open()
    assert "ann is logged in" in visitor.text(), visitor.text()


def uses_a_host_cookie(secure):
    # The ports of a host share cookies, so the open plain page could overwrite this one.
    secure.open()
    secure.browser.delete_all_cookies()
    secure.log_in("ann")
    cookie = secure.cookie()
    assert cookie["secure"] and cookie["httpOnly"] and cookie["path"] == "/", cookie
    assert not cookie["domain"].startswith("."), cookie
    secure.open()
    assert "ann is logged in" in secure.text(), secure.text()
    names = [cookie["name"] for cookie in secure.browser.get_cookies()]
    assert names == [secure.name], names


def main():
    _, url, secure_url = sys.argv
    with launch_browser() as browser, launch_browser(accepts_any_certificate=True) as other:
        visitor, elsewhere = Visitor(browser, url), Visitor(other, url)
        secure = Visitor(other, secure_url, cookie="__Host-session")
        run_checks([
            ("a login replaces the cookie, which no script can read", lambda: logs_in_and_rotates(visitor)),
            ("an open page shows a logout from elsewhere", lambda: logs_out_elsewhere(visitor, elsewhere)),
            ("a logout in one tab reaches the other", lambda: logs_out_in_another_tab(visitor)),
            ("Back shows no page of a user who has logged out", lambda: hides_the_page_from_back(visitor)),
            ("a page of a foreign site can neither log in nor log out", lambda: rejects_foreign_logins(visitor)),
            ("with TLS the cookie is __Host-, Secure, and accepted again", lambda: uses_a_host_cookie(secure)),
        ])


if __name__ == "__main__":
    main()
