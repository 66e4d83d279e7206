"""Clients of a balancer that post and follow a channel at the same time, and remember each failure."""

import contextlib
import http.client
import json
import socket
import threading

# The longest time of one request. The server answers a poll after 25 seconds.
PATIENCE = 40
# The channel of the demo keeps 100 messages: no follower may be further behind.
MOST_MESSAGES_AHEAD = 40


class Client:
    """A client with one connection, which it opens again when the server closes it."""

    def __init__(self, address):
        self.address, self.connection = address, None

    def connect(self):
        """Opens a connection if there is none, and returns its socket."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
            self.connection.connect()
        return self.connection.sock

    def ask(self, method, path, body=None, fields={}):
        """Sends a request and returns the response, whose content is not read, or raises an error of the connection."""
        try:
            self.connect()
            self.connection.request(method, path, body, fields)
            return self.connection.getresponse()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Load:
    """Threads that run until the end of the block."""

    def __init__(self, address):
        self.address, self.is_over, self.is_posting_over = address, threading.Event(), threading.Event()
        self.failures, self.lock, self.threads = [], threading.Lock(), []
        # The numbers of acknowledged and of refused posts.
        self.posted, self.refused = [], []
        self.followers = []
        self.requests = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.is_posting_over.set()
        self.is_over.set()
        for follower in self.followers:
            follower.stop()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a client does not end"
        self.threads = []

    def start(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()
        return thread

    def end_posting(self, posting):
        """Waits for the last answer to `posting`, the thread of `post`: `posted` has all of its numbers then."""
        self.is_posting_over.set()
        posting.join(PATIENCE)
        assert not posting.is_alive(), "a post has no answer"

    def count(self):
        with self.lock:
            self.requests += 1

    def fail(self, what):
        with self.lock:
            self.failures.append(what)

    def post(self, path, body_of, most):
        """Posts numbers until the end or `most`, and waits for followers that are 40 messages behind."""
        client = Client(self.address)
        for number in range(most):
            while self.is_ahead(number) and not self.is_posting_over.is_set():
                self.is_posting_over.wait(0.005)
            if self.is_posting_over.is_set():
                break
            self.count()
            try:
                answer = client.ask("POST", path, json.dumps(body_of(number)), {"Content-Type": "application/json"})
                answer.read()
                status = answer.status
            except (OSError, http.client.HTTPException) as error:
                status = repr(error)
            if status in (200, 204):
                self.posted.append(number)
            else:
                self.refused.append(number)
                self.fail(f"post {number}: {status}")
        client.close()

    def is_ahead(self, number):
        return any(number - len(follower.seen) > MOST_MESSAGES_AHEAD for follower in self.followers)

    def get(self, path):
        """Requests a page again and again."""
        client = Client(self.address)
        while not self.is_over.is_set():
            self.count()
            try:
                answer = client.ask("GET", path)
                answer.read()
                if answer.status != 200:
                    self.fail(f"GET {path}: {answer.status}")
            except (OSError, http.client.HTTPException) as error:
                self.fail(f"GET {path}: {error!r}")
        client.close()

    def follow(self, follower):
        self.followers.append(follower)
        self.start(follower.run, self)


class Poll:
    """Follows a channel by polls, from cursor to cursor."""

    def __init__(self, channel, after):
        self.channel, self.cursor, self.seen, self.nodes = channel, after, [], set()

    def stop(self):
        """Its last poll ends by itself."""

    def run(self, load):
        client = Client(load.address)
        while not load.is_over.is_set():
            load.count()
            try:
                answer = client.ask("GET", f"/channels?c={self.channel}&after={self.cursor}&wait=2", fields={"Accept": "application/json"})
                content = answer.read()
            except (OSError, http.client.HTTPException) as error:
                load.fail(f"poll: {error!r}")
                continue
            if answer.status not in (200, 204) or "Cursor-Lost" in answer.headers:
                load.fail(f"poll: {answer.status} {answer.headers.items()}")
                continue
            self.nodes.add(answer.headers["X-Node"])
            self.cursor = answer.headers["Cursor"]
            self.seen += [message["data"] for message in json.loads(content or b"[]")]
        client.close()


class Stream:
    """Follows a channel by server-sent events, as a browser does: it connects again with the last id."""

    def __init__(self, channel, after):
        self.channel, self.cursor, self.seen, self.nodes = channel, after, [], set()
        # The times that the server gave for the next connection, in milliseconds.
        self.delays, self.socket = [], None

    def stop(self):
        # The stream may be silent for 20 seconds. An error means that it has ended.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def run(self, load):
        while not load.is_over.is_set():
            load.count()
            client = Client(load.address)
            try:
                with contextlib.closing(client):
                    self.socket = client.connect()
                    answer = client.ask("GET", f"/channels?c={self.channel}&after={self.cursor}", fields={"Accept": "text/event-stream"})
                    if answer.status != 200:
                        load.fail(f"stream: {answer.status}")
                        continue
                    self.nodes.add(answer.headers["X-Node"])
                    self.read(answer, load)
            except (OSError, http.client.HTTPException) as error:
                if not load.is_over.is_set():
                    load.fail(f"stream: {error!r}")

    def read(self, answer, load):
        data = None
        while line := answer.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "id":
                self.cursor = value
            elif name == "data":
                data = value
            elif name == "retry":
                self.delays.append(int(value))
            elif name == "event" and value == "lost":
                load.fail("stream: messages are lost")
            elif not name and data is not None:
                self.seen.append(data)
                data = None
            if load.is_over.is_set():
                return
