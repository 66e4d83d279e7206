"""Drives Firefox through its own protocol, Marionette, with the classes of Selenium: Debian has no geckodriver."""

import contextlib
import json
import pathlib
import socket
import subprocess
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.remote.remote_connection import RemoteConnection

# Long enough for a busy machine.
PATIENCE = 40
PREFERENCES = {
    # Any free port; the browser writes it into the profile.
    "marionette.port": 0,
    # The proxy of `set_offline`.
    "network.proxy.allow_hijacking_localhost": True,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 1,
    # The browser makes no requests of its own.
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.safebrowsing.downloads.remote.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.getAddons.cache.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.server": "",
}
# The commands of Selenium, and those of the protocol. Their parameters have the same names.
COMMANDS = {
    "newSession": "NewSession",
    "get": "Navigate",
    "goBack": "Back",
    "goForward": "Forward",
    "refresh": "Refresh",
    "getCurrentUrl": "GetCurrentURL",
    "getTitle": "GetTitle",
    "getPageSource": "GetPageSource",
    "findElement": "FindElement",
    "findElements": "FindElements",
    "clickElement": "ElementClick",
    "clearElement": "ElementClear",
    "sendKeysToElement": "ElementSendKeys",
    "w3cExecuteScript": "ExecuteScript",
    "w3cExecuteScriptAsync": "ExecuteAsyncScript",
    "setTimeouts": "SetTimeouts",
    "actions": "PerformActions",
    "newWindow": "NewWindow",
    "close": "CloseWindow",
    "w3cGetWindowHandles": "GetWindowHandles",
    "w3cGetCurrentWindowHandle": "GetWindowHandle",
    "switchToWindow": "SwitchToWindow",
}


@contextlib.contextmanager
def launch_firefox(accepts_any_certificate=False):
    """A new Firefox, which is killed at the end of the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        profile = pathlib.Path(folder)
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items()]
        profile.joinpath("user.js").write_text("".join(lines))
        # System access lets a test run code of the browser itself, such as for its console.
        command = ["firefox-esr", "--headless", "--no-remote", "--marionette", "--remote-allow-system-access", "--profile", folder]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with socket.create_connection(("127.0.0.1", port_of(process, profile)), PATIENCE) as line:
                options = webdriver.FirefoxOptions()
                options.accept_insecure_certs = accepts_any_certificate
                browser = Firefox(Marionette(line), options=options)
                browser.set_page_load_timeout(20)
                browser.set_script_timeout(20)
                yield browser
        finally:
            process.kill()
            process.wait()


class Firefox(webdriver.Remote):
    """The browser, with the methods of `Chromium` beyond those of Selenium."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        # Files for forms are on this machine already.
        self._is_remote = False

    def set_offline(self, is_offline):
        # Pages get the events, but an offline browser still reaches this machine: a proxy that does not exist prevents that.
        self.execute_inside(f"""
            Services.io.offline = {json.dumps(is_offline)};
            Services.prefs.setIntPref("network.proxy.type", {int(is_offline)});
        """)

    def drag(self, source, target):
        """Drags an element to another one. Without a screen the browser has no drags of a mouse, so it only gets their events."""
        self.execute_script("""
            const [source, target] = arguments;
            const dataTransfer = new DataTransfer();
            const send = (element, type) => element.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
            send(source, "dragstart");
            // A drop is allowed where the page cancels this event.
            if (!send(target, "dragover")) send(target, "drop");
            send(source, "dragend");
        """, source, target)

    def read_console(self):
        """The errors of pages since the last call."""
        return self.execute_inside("""
            const messages = Services.console.getMessageArray();
            Services.console.reset();
            const errors = messages.filter((one) => one instanceof Ci.nsIScriptError && !(one.flags & one.warningFlag));
            return errors.filter((one) => one.sourceName.startsWith("http")).map((one) => one.message);
        """)

    def execute_inside(self, script):
        """Runs a script with the rights of the browser itself."""
        self.command_executor.send("Marionette:SetContext", {"value": "chrome"})
        try:
            return self.execute_script(script)
        finally:
            self.command_executor.send("Marionette:SetContext", {"value": "content"})


def port_of(process, profile):
    """The port of the protocol, which the browser writes when it is ready."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError):
            return int(profile.joinpath("MarionetteActivePort").read_text())
        assert process.poll() is None, "Firefox has ended"
        time.sleep(0.02)
    raise AssertionError("Firefox did not start")


class Marionette(RemoteConnection):
    """One connection. A message is its length, a colon, and JSON: a request is `[0, id, command, parameters]`, its response `[1, id, error, result]`."""

    def __init__(self, line):
        self.line, self.count = line, 0
        self.stream = line.makefile("rb")
        # The greeting of the browser.
        self.receive()

    def execute(self, command, params):
        # A connection has one session.
        params.pop("sessionId", None)
        if command == "newSession":
            params = params["capabilities"]["alwaysMatch"]
        return self.send(f"WebDriver:{COMMANDS[command]}", params)

    def send(self, command, params):
        """Sends a command and returns its response as Selenium reads it."""
        self.count += 1
        message = json.dumps([0, self.count, command, params])
        self.line.sendall(f"{len(message)}:{message}".encode())
        _, _, error, result = self.receive()
        if error:
            return {"status": 500, "value": json.dumps({"value": error})}
        return {"value": result["value"] if isinstance(result, dict) and "value" in result else result}

    def receive(self):
        size = b""
        while (byte := self.stream.read(1)) != b":":
            assert byte, "Firefox has closed its connection"
            size += byte
        return json.loads(self.stream.read(int(size)))

    def close(self):
        """Selenium closes its connection; this one belongs to the block."""
