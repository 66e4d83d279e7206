"""Checks the auction on three nodes behind HAProxy: two users bid in windows of browsers.

usage: cluster_auction.py PROGRAM NATS GUIDE SCREENSHOTS

NATS is the URL of a NATS server. The configuration of HAProxy is that of the chapter GUIDE. Saves screenshots in the
folder SCREENSHOTS.
"""

import json
import os
import pathlib
import re
import sys

from selenium.webdriver.common.by import By

from browser import launch_browser, resize
from checks import run_checks
from cluster import NAMES, cluster
from program import until

# A thousand users and some 40 items.
ENVIRONMENT = {"AUCTION_SCALE": "0.001", "AUCTION_SECRET": "shared by all nodes"}


class Bidder:
    """A user with a browser."""

    def __init__(self, browser, balancer, name, password):
        self.browser, self.balancer, self.name, self.password = browser, balancer, name, password

    def open(self, path):
        self.browser.get(self.balancer.url(path))

    def heading(self):
        return self.browser.find_element(By.TAG_NAME, "h1").text

    def submit(self, **values):
        for name, value in values.items():
            field = self.browser.find_element(By.CSS_SELECTOR, f"main [name={name}]")
            field.clear()
            field.send_keys(value)
        self.browser.find_element(By.CSS_SELECTOR, "main form button").click()

    def bid(self, item, amount):
        """Logs in, bids, and returns the heading of the result."""
        self.open(f"{item}/bid")
        self.submit(name=self.name, password=self.password)
        until(lambda: self.browser.find_elements(By.NAME, "amount"), lambda: self.browser.page_source)
        self.submit(amount=str(amount))
        until(lambda: not self.browser.find_elements(By.NAME, "amount"), lambda: self.browser.page_source)
        return self.heading()

    def price(self, item):
        self.open(item)
        return int(self.browser.find_element(By.TAG_NAME, "dd").text.lstrip("$"))

    def nodes(self):
        """The nodes that have answered requests since the last call."""
        nodes = set()
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.responseReceived":
                fields = {name.lower(): value for name, value in message["params"]["response"]["headers"].items()}
                nodes.add(fields.get("x-node"))
        return nodes - {None}


class Auction:
    def __init__(self, nodes, left, right, screenshots):
        self.cluster_nodes, self.left, self.right = nodes, left, right
        self.screenshots = pathlib.Path(screenshots)
        self.screenshots.mkdir(parents=True, exist_ok=True)
        self.item = None

    def find_item(self):
        """The address of an item that is for sale."""
        self.left.open("/categories")
        for category in sorted(set(re.findall(r'href="(/categories/[^"/]+)"', self.left.browser.page_source))):
            self.left.open(category)
            if items := re.findall(r'href="(/items/[^"/]+)/bid"', self.left.browser.page_source):
                return items[0]
        raise AssertionError("no item is for sale")

    def bid_in_turns(self):
        price = self.left.price(self.item)
        for bidder, other in [(self.left, self.right), (self.right, self.left)]:
            price += 10
            assert bidder.bid(self.item, price) == "Your bid counts", bidder.browser.page_source
            until(lambda: other.price(self.item) == price, lambda: other.browser.page_source)

    def bids_at_one_node_are_seen_at_the_others(self):
        self.item = self.find_item()
        self.bid_in_turns()
        for side, bidder in [("left", self.left), ("right", self.right)]:
            bidder.open(self.item)
            bidder.browser.save_screenshot(str(self.screenshots / f"cluster-auction-{side}.png"))
        nodes = [bidder.nodes() for bidder in (self.left, self.right)]
        assert nodes == [set(NAMES)] * 2, nodes

    def bids_go_on_after_a_kill(self):
        price = self.left.price(self.item)
        self.cluster_nodes[0].kill()
        assert self.right.price(self.item) == price
        self.bid_in_turns()
        self.cluster_nodes[0].start()
        self.left.nodes()

        def is_seen_at_the_new_process():
            shown = self.left.price(self.item)
            assert shown == price + 20, shown
            return NAMES[0] in self.left.nodes()

        until(is_seen_at_the_new_process, "a request to the new process")


def main():
    _, program, nats, guide, screenshots = sys.argv
    os.environ.update(ENVIRONMENT)
    with cluster(program, nats, guide) as (balancer, nodes), launch_browser(logs_network=True) as left, launch_browser(logs_network=True) as right:
        for browser in (left, right):
            resize(browser, 620, 900)
        bidders = [Bidder(left, balancer, "user1", "password1"), Bidder(right, balancer, "user2", "password2")]
        auction = Auction(nodes, *bidders, screenshots)
        run_checks([
            ("bids at one node are seen at the others", auction.bids_at_one_node_are_seen_at_the_others),
            ("bids go on after a node was killed", auction.bids_go_on_after_a_kill),
        ])


if __name__ == "__main__":
    main()
