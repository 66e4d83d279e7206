"""Checks the EventSource of a browser against the events of a channel.

usage: events_browser.py URL

URL is a server where any client may publish to the channel `news`.
"""

import json
import pathlib
import sys

from browser import launch_browser
from checks import run_checks

# Publishes, subscribes from before the first message, and returns the events or the error.
FOLLOW = """
const [messages, done] = arguments;
(async () => {
  const before = await fetch("/channels?c=news&after=now&wait=0");
  const batch = messages.map(({ data, event }) => ({ channels: "news", data, event }));
  const news = new EventSource(`/channels?c=news&after=${before.headers.get("Cursor")}`);
  const seen = [];
  const take = ({ type, data, lastEventId }) => {
    seen.push({ type, data, id: lastEventId });
    if (seen.length < messages.length) return;
    news.close();
    done(seen);
  };
  news.onmessage = take;
  news.addEventListener("weather", take);
  news.onerror = () => done("an error");
  // The first half is published before the subscription, the rest during it.
  const half = messages.length / 2;
  const publish = (some) => fetch("/channels", { method: "POST", body: JSON.stringify(some) });
  await publish(batch.slice(0, half));
  news.onopen = () => publish(batch.slice(half));
  if (news.readyState === EventSource.OPEN) news.onopen();
})().catch((error) => done(String(error)));
"""
# Checks the page of the example.
SHOWN = """
const done = arguments[arguments.length - 1];
fetch("/channels", { method: "POST", body: '{"channels":"news","data":"<b>last</b>"}' });
const look = () => {
  const last = document.querySelector("#news li:last-child");
  if (last?.textContent === "<b>last</b>") done([]); else setTimeout(look, 10);
};
look();
"""


def follow(browser, messages):
    seen = browser.execute_async_script(FOLLOW, messages)
    assert isinstance(seen, list), seen
    assert [event["data"] for event in seen] == [message.get("read", message["data"]) for message in messages], seen
    assert [event["type"] for event in seen] == [message.get("event", "message") for message in messages], seen
    ids = [event["id"] for event in seen]
    assert ids == sorted(set(ids)), ids


def main():
    url = sys.argv[1]
    messages = json.loads(pathlib.Path(__file__).with_name("events.json").read_text())
    with launch_browser() as browser:
        browser.get(url)
        run_checks([
            ("EventSource in a browser reads messages of every kind", lambda: follow(browser, messages)),
            ("the page of the example shows published messages", lambda: browser.execute_async_script(SHOWN)),
        ])


if __name__ == "__main__":
    main()
