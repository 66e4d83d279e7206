"""Decides what the `websockets` library must find in a server that sends back what it hears.

usage: frames_websockets.py URL
"""

import sys

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

from judge import judge

PATIENCE = 10


def messages_come_back(url):
    with connect(url, max_size=None) as peer:
        # Sent in fragments, it comes back whole.
        parts = ["a", "\u20ac", "", "\U0001f600"]
        for message in ["", "Hello", "\u00e4\u20ac\U0001f600", b"", b"\xff\x00", "x" * 70_000, bytes(1 << 20), parts]:
            peer.send(message)
            expected = "".join(message) if isinstance(message, list) else message
            assert peer.recv(PATIENCE) == expected, f"{message[:20]!r} came back as something else"


def many_are_in_order(url):
    with connect(url) as peer:
        for number in range(1000):
            peer.send(str(number))
        for number in range(1000):
            assert peer.recv(PATIENCE) == str(number), number


def a_ping_is_answered(url):
    with connect(url) as peer:
        assert peer.ping(b"\x00are you there?").wait(PATIENCE), "no pong"


def a_subprotocol_is_agreed_on(url):
    with connect(url, subprotocols=["unheard-of", "echo"]) as peer:
        assert peer.subprotocol == "echo", peer.subprotocol
        assert not peer.protocol.extensions, peer.protocol.extensions


def a_close_is_answered(url):
    with connect(url) as peer:
        peer.close(4000, "done")
        assert (peer.close_code, peer.close_reason) == (4000, ""), (peer.close_code, peer.close_reason)


def faults_are_named(url):
    for opcode, payload, code in [
        (Opcode.TEXT, b"\xff", 1007),
        (Opcode.CONT, b"", 1002),
        (Opcode.CLOSE, b"\x00\x00", 1002),
        (Opcode.BINARY, bytes((16 << 20) + 1), 1009),
    ]:
        with connect(url) as peer:
            # Whoever sends on after the answer came may be told that nobody listens.
            try:
                peer.socket.sendall(Frame(opcode, payload).serialize(mask=True))
            except OSError:
                pass
            try:
                raise AssertionError(f"{opcode.name} was answered {peer.recv(PATIENCE)!r}")
            except ConnectionClosed as closed:
                assert closed.rcvd and closed.rcvd.code == code, f"{opcode.name}: {closed}"


def other_versions_are_refused(url):
    try:
        connect(url, additional_headers={"Sec-WebSocket-Version": "8"})
    except InvalidStatus as refused:
        answer = refused.response
        assert answer.status_code == 426, answer
        assert answer.headers["Sec-WebSocket-Version"] == "13", answer
    else:
        raise AssertionError("accepted")


def main():
    url = sys.argv[1]
    judge([
        ("messages of every kind come back to websockets", lambda: messages_come_back(url)),
        ("a thousand messages of websockets come back in order", lambda: many_are_in_order(url)),
        ("a ping of websockets is answered", lambda: a_ping_is_answered(url)),
        ("a subprotocol is agreed on with websockets, and no extension", lambda: a_subprotocol_is_agreed_on(url)),
        ("a close of websockets is answered with its code", lambda: a_close_is_answered(url)),
        ("websockets is told what it did wrong", lambda: faults_are_named(url)),
        ("websockets is told the one version there is", lambda: other_versions_are_refused(url)),
    ])


if __name__ == "__main__":
    main()
