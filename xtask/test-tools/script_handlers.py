"""Checks handlers of TSX pages, which run in the browser.

usage: script_handlers.py BROWSER BINE SITE

BROWSER is `Chromium` or `Firefox`, BINE is the program, and SITE the folder of the application.
"""

import pathlib
import shutil
import sys
import tempfile

from browser import launch_browser
from checks import run_checks
from firefox import launch_firefox
from handlers_basics import Basics
from handlers_engines import Engines
from handlers_lists import Lists
from handlers_network import Network
from program import Program
from reports import Reports

BROWSERS = {"Chromium": launch_browser, "Firefox": launch_firefox}


def main(name, bine, source):
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder, "site")
        shutil.copytree(source, site)
        # The folder of uploads must exist.
        site.joinpath("public").mkdir()
        words = ("serve", str(site))
        with Program(bine, words=words) as server:
            policy = server.fields("/")["Content-Security-Policy"]
        with Reports() as reports:
            options = ["--development", "on", "--content-security-policy", f"{policy}; report-uri {reports.url()}"]
            with Program(bine, *options, words=words) as server, BROWSERS[name]() as browser:
                groups = [group(server, site, browser, reports) for group in (Basics, Lists, Engines, Network)]
                run_checks([(f"{claim} ({name})", check) for group in groups for claim, check in group.checks()])


if __name__ == "__main__":
    main(*sys.argv[1:])
