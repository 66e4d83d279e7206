"""Decides what the library `httpx-sse` must find in the events of a channel.

usage: events_httpx.py URL

URL is a server where everybody may publish in the channel `news`.
"""

import json
import pathlib
import sys

import httpx
import httpx_sse

from judge import judge

PATIENCE = 10


def end(peer):
    answer = peer.get("/channels", params={"c": "news", "after": "now", "wait": 0})
    assert answer.status_code == 204, answer
    return answer.headers["Cursor"]


def publish(peer, messages):
    batch = [{"channels": "news", **{name: message[name] for name in ("data", "event") if name in message}} for message in messages]
    answer = peer.post("/channels", content=json.dumps(batch, separators=(",", ":")))
    assert answer.status_code == 200, answer.text


def events(peer, after, count):
    cursors, seen = told(peer, after), []
    with httpx_sse.connect_sse(peer, "GET", "/channels", params={"c": "news"}, headers={"Last-Event-ID": after}) as source:
        for event in source.iter_sse():
            # A mark has an id alone: browsers remember it and say nothing, this library tells of it.
            if event.id in cursors:
                seen.append(event)
            if len(seen) == count:
                return seen
    raise AssertionError(f"the stream ended after {len(seen)} events")


def told(peer, after):
    """The cursors of the messages behind one, as a poll tells them."""
    answer = peer.get("/channels", params={"c": "news", "after": after, "limit": 1000})
    return [message["cursor"] for message in answer.json()]


def every_kind_is_read(peer):
    messages = json.loads(pathlib.Path(__file__).with_name("events.json").read_text())
    after = end(peer)
    publish(peer, messages)
    seen = events(peer, after, len(messages))
    assert [event.data for event in seen] == [message.get("read", message["data"]) for message in messages], seen
    assert [event.event for event in seen] == [message.get("event", "message") for message in messages], seen
    assert [event.id for event in seen] == told(peer, after), seen


def it_goes_on(peer):
    after = end(peer)
    publish(peer, [{"data": str(number)} for number in range(200)])
    first = events(peer, after, 71)
    rest = events(peer, first[-1].id, 129)
    assert [event.data for event in rest] == [str(number) for number in range(71, 200)], rest


def main():
    with httpx.Client(base_url=sys.argv[1], timeout=PATIENCE) as peer:
        judge([
            ("httpx-sse reads messages of every kind", lambda: every_kind_is_read(peer)),
            ("httpx-sse goes on behind the last event it has seen", lambda: it_goes_on(peer)),
        ])


if __name__ == "__main__":
    main()
