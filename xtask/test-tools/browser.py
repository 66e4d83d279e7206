"""Decides how a script has a real browser."""

import contextlib
import shutil

from selenium import webdriver


@contextlib.contextmanager
def a_browser(trusts_anybody=False, tells_events=False):
    """A browser of one's own, which is gone behind the block. One that trusts anybody takes any certificate.

    One that tells events has a log `performance` of what its pages and connections do.
    """
    options = webdriver.ChromeOptions()
    options.accept_insecure_certs = trusts_anybody
    # A sandbox cannot be made by root in a container; only our own pages are shown.
    for switch in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"]:
        options.add_argument(switch)
    logs = ["browser", "performance"] if tells_events else ["browser"]
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.set_page_load_timeout(20)
        browser.set_script_timeout(20)
        # What a page has the browser save stays nowhere.
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "deny"})
        yield browser
    finally:
        browser.quit()


def resize(browser, width, height):
    """Sets the size of the page itself, as the emulation of a device does."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
