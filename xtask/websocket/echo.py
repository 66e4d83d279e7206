"""Decides what the `websockets` library must find in a server that sends back what it hears.

usage: echo.py URL

Prints a line for each claim, `holds: CLAIM` or `fails: CLAIM: WHY`.
"""

import sys

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

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
    failed = False
    for claim, check in [
        ("messages of every kind come back to websockets", messages_come_back),
        ("a thousand messages of websockets come back in order", many_are_in_order),
        ("a ping of websockets is answered", a_ping_is_answered),
        ("a subprotocol is agreed on with websockets, and no extension", a_subprotocol_is_agreed_on),
        ("a close of websockets is answered with its code", a_close_is_answered),
        ("websockets is told what it did wrong", faults_are_named),
        ("websockets is told the one version there is", other_versions_are_refused),
    ]:
        try:
            check(sys.argv[1])
            print(f"holds: {claim}")
        except Exception as error:
            failed = True
            print(f"fails: {claim}: {' '.join(repr(error).split())}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
