"""A site in Flask whose visitors see new messages at once.

Bine is in front of it: it answers /channels and passes everything else on. Start it with
`flask --app news run --port 9000`.
"""

import json
import os
import urllib.request

from flask import Flask, redirect, request

app = Flask(__name__)

PAGE = """<!doctype html>
<title>Flask</title>
<p>A page for {visitor}</p>
<form method="post"><input name="text"><button>Publish</button></form>
<ul></ul>
<script>
new EventSource('/channels?c=public/news&gap=allow').onmessage = event => {{
    const item = document.createElement('li');
    item.textContent = JSON.parse(event.data).text;
    document.querySelector('ul').append(item);
}};
</script>
"""


@app.get("/")
def page():
    return PAGE.format(visitor=request.headers.get("X-Forwarded-For", "nobody"))


@app.post("/")
def publish():
    token = os.environ.get("PUSH_TOKEN")
    fields = {"Authorization": "Bearer " + token} if token else {}
    message = {"channels": ["public/news"], "data": {"text": request.form["text"]}}
    call = urllib.request.Request(
        os.environ["BINE_URL"] + "/channels",
        data=json.dumps(message).encode(),
        headers={"Content-Type": "application/json", **fields},
    )
    urllib.request.urlopen(call, timeout=5)
    return redirect("/", 303)
