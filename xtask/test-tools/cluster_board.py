"""Checks the demo on three nodes behind HAProxy, with two windows in browsers.

usage: cluster_board.py PROGRAM NATS GUIDE SCREENSHOTS

NATS is the URL of a NATS server. The configuration of HAProxy is that of the chapter GUIDE. Saves screenshots in the folder SCREENSHOTS.
"""

import contextlib
import json
import pathlib
import sys

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import launch_browser, resize
from checks import run_checks
from cluster import NAMES, cluster
from load import Client, Load, Poll, Stream
from program import page_holds, until

# Each check has a forum of its own. The pages of a forum show its 100 newest messages.
GARDEN, KITCHEN = "/board/garden", "/board/kitchen"
# The bodies of all messages of the page, the newest first.
MESSAGES = "return [...document.querySelectorAll('.messages p')].map((one) => one.textContent)"
DRAFT = "half a sentence"
# Patches of the messages. The first region shows who is present, which differs between nodes.
COUNT_PATCHES = "window.patches = 0; document.addEventListener('bine:patch', ({ detail }) => { if (detail.region !== 0) window.patches++ })"


class Window:
    """A window of a browser, and the node that serves its live connection."""

    def __init__(self, browser, balancer):
        self.browser, self.balancer, self.node = browser, balancer, None

    def open(self, path):
        self.browser.get(self.balancer.url(path))
        page_holds(self.browser, "document.documentElement.dataset.live === 'open'")
        # Lost if the page is ever loaded again.
        self.browser.execute_script("window.stays = true")

    def find_node(self):
        """The node of the newest live connection, from the log of the browser's network."""
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            response = message.get("params", {}).get("response", {})
            if message["method"] == "Network.responseReceived" and "/_bine/live" in response["url"]:
                fields = {name.lower(): value for name, value in response["headers"].items()}
                self.node = fields["x-node"]
        return self.node

    def open_at_another_node(self, path, other):
        """Opens a page until its live connection is at another node than that of the other window."""

        def is_elsewhere():
            # A page may cause as many requests as there are nodes, so that each load has the same node.
            ask_node(self.balancer)
            self.open(path)
            return self.find_node() != other

        until(is_elsewhere, "a live connection at another node")

    def messages(self):
        return self.browser.execute_script(MESSAGES)

    def write_draft(self):
        self.browser.find_element(By.NAME, "body").send_keys(DRAFT)
        assert self.draft() == DRAFT, self.draft()

    def post(self, text):
        self.browser.find_element(By.NAME, "body").send_keys(text, Keys.ENTER)

    def draft(self):
        return self.browser.execute_script("return document.querySelector('[name=body]').value")

    def check_unbroken(self):
        """The page was never loaded again, and has its draft."""
        assert self.browser.execute_script("return window.stays"), "the page was loaded again"
        assert self.draft() == DRAFT, self.draft()


def ask_node(balancer):
    """The node that has the next turn."""
    with contextlib.closing(Client(balancer.address)) as client:
        answer = client.ask("GET", "/health")
        answer.read()
        return answer.headers["X-Node"]


class Cluster:
    def __init__(self, balancer, nodes, left, right, screenshots):
        self.balancer, self.nodes = balancer, nodes
        self.left, self.right = left, right
        self.screenshots = pathlib.Path(screenshots)
        self.screenshots.mkdir(parents=True, exist_ok=True)

    def node(self, name):
        [node] = [node for node in self.nodes if node.name == name]
        return node

    def save_screenshots(self, what):
        for side, window in [("left", self.left), ("right", self.right)]:
            window.browser.save_screenshot(str(self.screenshots / f"cluster-{what}-{side}.png"))

    def await_node(self, name):
        """Waits until the balancer sends requests to a node."""

        until(lambda: ask_node(self.balancer) == name, f"node {name} gets requests")

    def cursor(self):
        """The position of the newest message of the channel."""
        with contextlib.closing(Client(self.balancer.address)) as client:
            answer = client.ask("GET", "/channels?c=board&after=now&wait=0")
            answer.read()
            return answer.headers["Cursor"]

    def open_windows(self, path):
        self.left.open(path)
        self.left.find_node()
        self.right.open_at_another_node(path, self.left.node)

    def requests_go_to_all_nodes(self):
        for name in NAMES:
            self.await_node(name)

    def post_reaches_window_at_another_node(self):
        self.open_windows(GARDEN)
        for writer, text in [(self.left, "From the left."), (self.right, "From the right.")]:
            writer.post(text)
            for window in (self.left, self.right):
                until(lambda: window.messages()[:1] == [text], window.messages)
        self.save_screenshots("two-nodes")
        return f"nodes {self.left.node} and {self.right.node}"

    def page_moves_to_another_node(self):
        """Stops the node of the left window. The messages stay as they are, so no patch has them."""
        self.left.open(GARDEN)
        self.left.write_draft()
        stopped = self.node(self.left.find_node())
        self.left.browser.execute_script(COUNT_PATCHES)
        stopped.terminate()
        assert stopped.end() == 0
        until(lambda: self.left.find_node() != stopped.name, "a live connection at another node")
        page_holds(self.left.browser, "document.documentElement.dataset.live === 'open'")
        self.post("garden", "After the move.")
        until(lambda: self.left.messages()[:1] == ["After the move."], self.left.messages)
        assert self.left.browser.execute_script("return window.patches") == 1
        self.left.check_unbroken()
        stopped.start()
        self.await_node(stopped.name)

    def post(self, forum, text):
        with contextlib.closing(Client(self.balancer.address)) as client:
            answer = client.ask("POST", "/board/post", json.dumps({"forum": forum, "body": text}), {"Content-Type": "application/json"})
            assert answer.status in (200, 204), answer.read()

    def posts_survive_kill(self):
        """Kills the node of the left window while posts go on."""
        self.open_windows(KITCHEN)
        for window in (self.left, self.right):
            window.write_draft()
        killed = self.node(self.left.node)
        with Load(self.balancer.address) as load:
            load.start(load.post, "/board/post", lambda number: {"forum": "kitchen", "body": f"post {number}"}, 90)
            until(lambda: len(load.posted) >= 20, "posts before the kill")
            killed.kill()
            until(lambda: len(load.posted) + len(load.refused) == 90, "all posts have an outcome")
        expected = [f"post {number}" for number in load.posted]
        refused = {f"post {number}" for number in load.refused}
        assert len(expected) >= 80, f"refused: {load.failures}"
        for window in (self.left, self.right):
            until(lambda: set(expected) <= set(window.messages()), window.messages)
            page_holds(window.browser, "document.documentElement.dataset.live === 'open'")
        until(lambda: self.left.messages() == self.right.messages(), lambda: [self.left.messages(), self.right.messages()])
        shown = self.left.messages()[::-1]
        # A refused post may have taken effect without an acknowledgment.
        assert [text for text in shown if text not in refused] == expected, shown
        assert len(set(shown)) == len(shown), shown
        for window in (self.left, self.right):
            window.check_unbroken()
        assert self.left.find_node() != killed.name, self.left.node
        self.save_screenshots("after-kill")
        killed.start()
        self.await_node(killed.name)
        return f"{len(expected)} posts were acknowledged and {len(refused)} refused: {load.failures}"

    def rolling_restart_is_unnoticed(self):
        self.open_windows(GARDEN)
        for window in (self.left, self.right):
            window.write_draft()
        after = self.cursor()
        followers = [Poll("board", after), Poll("board", after), Stream("board", after), Stream("board", after)]
        with Load(self.balancer.address) as load:
            for follower in followers:
                load.follow(follower)
            posting = load.start(load.post, "/board/post", lambda number: {"forum": "garden", "body": f"news {number}"}, sys.maxsize)
            load.start(load.get, "/board")
            for node in self.nodes:
                witness = self.nodes[0] if node is not self.nodes[0] else self.nodes[1]
                node.terminate()
                until(lambda: "leaving" in witness.status(), witness.status)
                status = node.end()
                assert status == 0, f"node {node.name} ended with {status}"
                node.start()
                self.await_node(node.name)
            posted_until = len(load.posted)
            until(lambda: len(load.posted) > posted_until + 20, "posts after the restarts")
            load.end_posting(posting)
            until(lambda: all(len(each.seen) >= len(load.posted) for each in followers), lambda: [len(each.seen) for each in followers])
        assert not load.failures, load.failures
        expected = [f"news {number}" for number in load.posted]
        # The board publishes after its commit, so two posts at two nodes may be published in either order.
        # All followers have the same order.
        order = followers[0].seen
        assert sorted(text.rsplit(": ", 1)[1] for text in order) == sorted(expected), order
        for follower in followers:
            assert follower.seen == order, [pair for pair in zip(follower.seen, order) if pair[0] != pair[1]][:3]
            assert len(follower.nodes) > 1, follower.nodes
        assert any(follower.delays for follower in followers[2:]), "no stream was told when to connect again"
        for window in (self.left, self.right):
            until(lambda: window.messages()[::-1] == expected[-100:], window.messages)
            window.check_unbroken()
        self.save_screenshots("after-rolling-restart")
        return f"{load.requests} requests, {len(expected)} posts"


def main():
    _, program, nats, guide, screenshots = sys.argv
    with cluster(program, nats, guide) as (balancer, nodes), launch_browser(logs_network=True) as left, launch_browser(logs_network=True) as right:
        for browser in (left, right):
            resize(browser, 620, 900)
        own = Cluster(balancer, nodes, Window(left, balancer), Window(right, balancer), screenshots)
        run_checks([
            ("the balancer sends requests to all nodes", own.requests_go_to_all_nodes),
            ("a post appears in the window of another node", own.post_reaches_window_at_another_node),
            ("a page whose node stops continues at another one, without a reload and without known content", own.page_moves_to_another_node),
            ("acknowledged posts appear once after a node was killed", own.posts_survive_kill),
            ("a rolling restart under load fails no request and misses no message", own.rolling_restart_is_unnoticed),
        ])


if __name__ == "__main__":
    main()
