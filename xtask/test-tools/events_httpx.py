"""Checks the library `httpx-sse` against the events of a channel.

usage: events_httpx.py URL

URL is a server where any client may publish to the channel `news`.
"""

import json
import pathlib
import sys

import httpx
import httpx_sse

from checks import run_checks

PATIENCE = 10


def end(client):
    answer = client.get("/channels", params={"c": "news", "after": "now", "wait": 0})
    assert answer.status_code == 204, answer
    return answer.headers["Cursor"]


def publish(client, messages):
    batch = [{"channels": "news", **{name: message[name] for name in ("data", "event") if name in message}} for message in messages]
    answer = client.post("/channels", content=json.dumps(batch, separators=(",", ":")))
    assert answer.status_code == 200, answer.text


def events(client, after, count):
    cursors, seen = cursors_after(client, after), []
    with httpx_sse.connect_sse(client, "GET", "/channels", params={"c": "news"}, headers={"Last-Event-ID": after}) as source:
        for event in source.iter_sse():
            # A cursor event has an id only: browsers remember it and dispatch no event, but this
            # library returns it.
            if event.id in cursors:
                seen.append(event)
            if len(seen) == count:
                return seen
    raise AssertionError(f"the stream ended after {len(seen)} events")


def cursors_after(client, after):
    """The cursors of the messages after one, read by a poll."""
    answer = client.get("/channels", params={"c": "news", "after": after, "limit": 1000})
    return [message["cursor"] for message in answer.json()]


def every_kind_is_read(client):
    messages = json.loads(pathlib.Path(__file__).with_name("events.json").read_text())
    after = end(client)
    publish(client, messages)
    seen = events(client, after, len(messages))
    assert [event.data for event in seen] == [message.get("read", message["data"]) for message in messages], seen
    assert [event.event for event in seen] == [message.get("event", "message") for message in messages], seen
    assert [event.id for event in seen] == cursors_after(client, after), seen


def it_resumes(client):
    after = end(client)
    publish(client, [{"data": str(number)} for number in range(200)])
    first = events(client, after, 71)
    rest = events(client, first[-1].id, 129)
    assert [event.data for event in rest] == [str(number) for number in range(71, 200)], rest


def main():
    with httpx.Client(base_url=sys.argv[1], timeout=PATIENCE) as client:
        run_checks([
            ("httpx-sse reads messages of every kind", lambda: every_kind_is_read(client)),
            ("httpx-sse resumes after the last event that it received", lambda: it_resumes(client)),
        ])


if __name__ == "__main__":
    main()
