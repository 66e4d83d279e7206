"""Checks the WebSocket of a browser against an echo server.

usage: frames_browser.py URL
"""

import sys

from browser import launch_browser
from checks import run_checks

# Each script returns [] or a list of errors.
TALK = """
const done = arguments[arguments.length - 1];
const socket = new WebSocket(location.href.replace("http", "ws"), ["echo"]);
const messages = ["", "Hello", "\\u00e4\\u20ac\\u{1f600}", "x".repeat(70000)];
const wrong = [];
let awaited = 0;
socket.onopen = () => messages.forEach((message) => socket.send(message));
socket.onmessage = ({ data }) => {
  if (data !== messages[awaited++]) wrong.push(`message ${awaited} is ${data.slice(0, 20)}`);
  if (awaited === messages.length) socket.close(4002, "done");
};
socket.onclose = ({ code, wasClean }) => {
  if (awaited !== messages.length) wrong.push(`${awaited} messages`);
  if (socket.protocol !== "echo" || socket.extensions) wrong.push(socket.protocol + socket.extensions);
  if (code !== 4002 || !wasClean) wrong.push(`closed by ${code}`);
  done(wrong);
};
"""
BYTES = """
const done = arguments[arguments.length - 1];
const socket = new WebSocket(location.href.replace("http", "ws"));
socket.binaryType = "arraybuffer";
const sent = new Uint8Array(200000).map((_, at) => at % 251);
socket.onopen = () => socket.send(sent);
socket.onmessage = ({ data }) => {
  const heard = new Uint8Array(data);
  const same = heard.length === sent.length && heard.every((byte, at) => byte === sent[at]);
  socket.onclose = null;
  socket.close();
  done(same ? [] : [`${heard.length} bytes came back`]);
};
socket.onclose = ({ code }) => done([`closed by ${code}`]);
"""


def ask(browser, script):
    wrong = browser.execute_async_script(script)
    assert not wrong, wrong


def main():
    with launch_browser() as browser:
        # A plain GET returns a page of the same origin.
        browser.get(sys.argv[1])
        run_checks([
            ("the server echoes text of a browser and closes cleanly", lambda: ask(browser, TALK)),
            ("the server echoes bytes of a browser", lambda: ask(browser, BYTES)),
        ])


if __name__ == "__main__":
    main()
