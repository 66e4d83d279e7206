"""A browser at the application with handlers, for the modules of checks."""

from selenium.webdriver.common.by import By

from program import page_holds, until


class Page:
    """One server and one browser, which all checks share. Each group of checks is a subclass."""

    def __init__(self, server, site, browser, reports):
        self.server, self.site, self.browser, self.reports = server, site, browser, reports

    def open(self, path="/"):
        """Opens a page with a live region."""
        self.browser.get(self.server.url(path))
        self.holds("document.documentElement.dataset.live === 'open'")

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector):
        self.find(selector).click()

    def holds(self, expression):
        page_holds(self.browser, expression)

    def value(self, expression):
        """The value of an expression on the page."""
        return self.browser.execute_script(f"return {expression}")

    def text(self, selector):
        return self.value(f"document.querySelector({selector!r}).textContent")

    def is_at(self, path):
        """Waits until the browser is at a path."""
        until(lambda: self.browser.current_url == self.server.url(path), lambda: self.browser.current_url)

    def call(self, service, body):
        """Calls a service from outside of the browser, with arguments in JSON. Returns status and text."""
        return self.server.ask("POST", f"/{service}", body, Content_Type="application/json", Accept="application/json")

    def hold_requests(self):
        """Lets calls of services from the page wait for `release_requests`."""
        self.browser.execute_script("""
            const { fetch } = window;
            const released = new Promise((resolve) => { window.release = resolve; });
            window.fetch = async (url, options) => {
              if (options?.method === "POST") await released;
              return fetch(url, options);
            };
            released.then(() => { window.fetch = fetch; });
        """)

    def release_requests(self):
        self.browser.execute_script("window.release()")
