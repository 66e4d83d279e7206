"""Starts, kills and restarts a program of ours for a test."""

import contextlib
import http.client
import pathlib
import socket
import subprocess
import tempfile
import time

from selenium.common.exceptions import WebDriverException

# Long enough for a busy machine.
PATIENCE = 20
# The note in a program before its build id: sizes, type, name.
BUILD_ID = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"


class Program:
    """A server with its own data folder, which is also its working directory. Killed at the end of the block."""

    def __init__(self, program, *options, words=()):
        """`words` come before all options: the command and its arguments."""
        self.program, self.options, self.words = program, options, words

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.reserved = {}
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        for holder in self.reserved.values():
            holder.close()
        self.folder.cleanup()

    def start(self, address="127.0.0.1:0"):
        """Starts the program with its existing data. After an end it can start again with the same address."""
        command = [self.program, *self.words, "--listen", address, "--data", self.folder.name, *self.options]
        self.process = subprocess.Popen(command, cwd=self.folder.name, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if "listening on http" in line:
                self.scheme, rest = line.split("listening on ")[1].split("://")
                self.address = rest.split("/")[0].strip()
                return
        raise AssertionError(f"{self.program} did not start")

    def kill(self):
        """Kills the program without a shutdown."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.keep_address()

    def keep_address(self):
        """Keeps the address of the ended program for its next start. If another has it already, that start fails."""
        if self.address not in self.reserved:
            with contextlib.suppress(OSError):
                self.reserved[self.address] = reserve(self.address)

    def url(self, path="/"):
        return f"{self.scheme}://{self.address}{path}"

    def ask(self, method, path, body=None, **fields):
        """Sends one request and returns status and text of the response; a field `Content_Type` is sent as `Content-Type`."""
        with self.exchange(method, path, body, fields) as answer:
            return answer.status, answer.read().decode()

    def fields(self, path):
        """The header fields of the response for a path."""
        with self.exchange("GET", path) as answer:
            return answer.headers

    @contextlib.contextmanager
    def exchange(self, method, path, body=None, fields={}):
        line = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        try:
            line.request(method, path, body, {name.replace("_", "-"): value for name, value in fields.items()})
            yield line.getresponse()
        finally:
            line.close()


def reserve(address):
    """Returns a socket that does not listen: while it is open, the system gives the port of an address to nobody else. Servers set SO_REUSEADDR, so that they can listen there."""
    host, port = address.rsplit(":", 1)
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((host, int(port)))
    return holder


def until(holds, what):
    """Waits until a condition is true. The driver raises various errors while a page changes; they count as false."""

    def is_so():
        try:
            return holds()
        except WebDriverException:
            return False

    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, f"timed out: {what() if callable(what) else what}"
        time.sleep(0.01)


def page_holds(browser, expression):
    """Waits until an expression is true on the page of a browser."""

    until(lambda: browser.execute_script(f"return Boolean({expression})"), lambda: f"{expression}: {browser.page_source}")


def replace_text(path, text):
    """Writes a file by a rename, as editors do, so that a server never reads a part of it."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)


def new_version(program, path, changes):
    """Writes a program as another build of its changed sources would be: with these texts replaced, each by one of the same length, and another build id."""
    content = pathlib.Path(program).read_bytes()
    begin = content.index(BUILD_ID) + len(BUILD_ID)
    content = content[:begin] + bytes(byte ^ 0xFF for byte in content[begin : begin + 20]) + content[begin + 20 :]
    for old, new in changes.items():
        assert len(old) == len(new) and old.encode() in content, old
        content = content.replace(old.encode(), new.encode())
    path.write_bytes(content)
    path.chmod(0o755)
