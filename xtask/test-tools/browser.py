
"""Launches a browser for a test."""

import contextlib
import shutil

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains


@contextlib.contextmanager
def launch_browser(accepts_any_certificate=False, logs_network=False, zone=None, language=None):
    """A new browser, which quits at the end of the block.

    With `logs_network` it has a log `performance` of the events of its pages and connections.
    `zone` and `language` are those of its visitor, such as `Europe/Berlin` and `de-DE`.
    """
    options = webdriver.ChromeOptions()
    options.accept_insecure_certs = accepts_any_certificate
    # Root cannot create a sandbox in a container; the browser opens only our own pages.
    for switch in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"]:
        options.add_argument(switch)
    if language:
        options.add_argument(f"--lang={language}")
        options.add_argument(f"--accept-lang={language}")
    logs = ["browser", "performance"] if logs_network else ["browser"]
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    browser = Chromium(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.set_page_load_timeout(20)
        browser.set_script_timeout(20)
        # Downloads are not saved.
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "deny"})
        if zone:
            browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
        yield browser
    finally:
        browser.quit()


class Chromium(webdriver.Chrome):
    """The browser, with the methods that a test of several browsers needs beyond those of Selenium."""

    def set_offline(self, is_offline):
        """Cuts the network for the page of the current window, or restores it."""
        # Without `Network.enable` the conditions have no effect.
        self.execute_cdp_cmd("Network.enable", {})
        conditions = {"offline": is_offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)

    def drag(self, source, target):
        """Drags an element to another one with the mouse."""
        ActionChains(self).drag_and_drop(source, target).perform()

    def read_console(self):
        """The errors of pages since the last call."""
        return [entry["message"] for entry in self.get_log("browser") if entry["level"] == "SEVERE"]


def resize(browser, width, height):
    """Sets the size of the page itself, like the emulation of a device."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
