"""Reads what a browser with `logs_network` reports about its connections."""

import json


def responses(browser):
    """The responses since the last call, each with `url`, `protocol` and `connectionId`."""
    events = (json.loads(line["message"])["message"] for line in browser.get_log("performance"))
    received = (event["params"]["response"] for event in events if event["method"] == "Network.responseReceived")
    return [response for response in received if response["url"].startswith("http")]
