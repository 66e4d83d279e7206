"""Checks the `websockets` library against an echo server.

usage: frames_websockets.py URL
"""

import sys

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

from checks import run_checks

PATIENCE = 10


def echoes_messages(url):
    with connect(url, max_size=None) as client:
        # A message sent in fragments returns whole.
        parts = ["a", "\u20ac", "", "\U0001f600"]
        for message in ["", "Hello", "\u00e4\u20ac\U0001f600", b"", b"\xff\x00", "x" * 70_000, bytes(1 << 20), parts]:
            client.send(message)
            expected = "".join(message) if isinstance(message, list) else message
            assert client.recv(PATIENCE) == expected, f"{message[:20]!r} came back as something else"


def keeps_the_order(url):
    with connect(url) as client:
        for number in range(1000):
            client.send(str(number))
        for number in range(1000):
            assert client.recv(PATIENCE) == str(number), number


def answers_a_ping(url):
    with connect(url) as client:
        assert client.ping(b"\x00are you there?").wait(PATIENCE), "no pong"


def negotiates_a_subprotocol(url):
    with connect(url, subprotocols=["unheard-of", "echo"]) as client:
        assert client.subprotocol == "echo", client.subprotocol
        assert not client.protocol.extensions, client.protocol.extensions


def answers_a_close(url):
    with connect(url) as client:
        client.close(4000, "done")
        assert (client.close_code, client.close_reason) == (4000, ""), (client.close_code, client.close_reason)


def names_protocol_errors(url):
    for opcode, payload, code in [
        (Opcode.TEXT, b"\xff", 1007),
        (Opcode.CONT, b"", 1002),
        (Opcode.CLOSE, b"\x00\x00", 1002),
        (Opcode.BINARY, bytes((16 << 20) + 1), 1009),
    ]:
        with connect(url) as client:
            # Sending may fail after the server has already closed the connection.
            try:
                client.socket.sendall(Frame(opcode, payload).serialize(mask=True))
            except OSError:
                pass
            try:
                raise AssertionError(f"{opcode.name} was answered {client.recv(PATIENCE)!r}")
            except ConnectionClosed as closed:
                assert closed.rcvd and closed.rcvd.code == code, f"{opcode.name}: {closed}"


def rejects_other_versions(url):
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
    run_checks([
        ("the server echoes messages of every kind to websockets", lambda: echoes_messages(url)),
        ("the server echoes a thousand messages of websockets in order", lambda: keeps_the_order(url)),
        ("the server answers a ping of websockets", lambda: answers_a_ping(url)),
        ("the server negotiates a subprotocol with websockets, and no extension", lambda: negotiates_a_subprotocol(url)),
        ("the server answers a close of websockets with its code", lambda: answers_a_close(url)),
        ("the server closes with the code of each protocol error of websockets", lambda: names_protocol_errors(url)),
        ("the server rejects another version of websockets and names its own", lambda: rejects_other_versions(url)),
    ])


if __name__ == "__main__":
    main()
