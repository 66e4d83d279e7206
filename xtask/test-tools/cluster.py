"""Three nodes of a program that share a NATS server, behind HAProxy."""

import contextlib
import http.client
import pathlib
import re
import signal
import socket
import subprocess
import tempfile

from program import Program, until

NAMES = ["one", "two", "three"]
# The addresses of the configuration in the guide, in the order of the nodes.
GUIDE_ADDRESSES = ["10.0.0.11:8080", "10.0.0.12:8080", "10.0.0.13:8080"]
# So that a rolling restart takes less than a minute. HAProxy checks each second.
TIMES = ["--leave-time", "4s", "--drain-timeout", "8s"]


class Node(Program):
    """A node of the cluster, which starts again at the same address."""

    def __init__(self, program, nats, name, *options):
        super().__init__(program, "--cluster", nats, "--cluster-node", name, "--control", "node.control", *TIMES, *options)
        self.name = name

    def start(self, address="127.0.0.1:0"):
        super().start(getattr(self, "address", address))

    def terminate(self):
        """Tells the node to stop."""
        self.process.send_signal(signal.SIGTERM)

    def end(self):
        """Waits until the node has stopped, and returns its status."""
        status = self.process.wait(timeout=30)
        self.process.stdout.close()
        self.keep_address()
        return status

    def status(self):
        """The nodes of the cluster as this one sees them."""
        command = [self.program, "cluster", "status", "--control", f"{self.folder.name}/node.control"]
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout


class Balancer:
    """HAProxy with the configuration of the guide, at a free port. Killed at the end of the block."""

    def __init__(self, guide, nodes):
        [text] = re.findall(r"```haproxy\n(.*?)```", pathlib.Path(guide).read_text(), re.DOTALL)
        for address, node in zip(GUIDE_ADDRESSES, nodes, strict=True):
            assert text.count(address) == 1, f"the configuration of the guide has no {address}"
            text = text.replace(address, node.address)
        assert text.count("bind :80\n") == 1, "the configuration of the guide does not bind port 80"
        self.text = text

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        # HAProxy inherits the socket, so that no other program can take the port.
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        file = pathlib.Path(self.folder.name) / "haproxy.cfg"
        file.write_text(self.text.replace("bind :80\n", f"bind fd@{self.socket.fileno()}\n"))
        self.log = open(f"{self.folder.name}/log", "w+")
        self.process = subprocess.Popen(["haproxy", "-db", "-f", file], pass_fds=[self.socket.fileno()], stdout=self.log, stderr=self.log)
        until(self.is_connected, self.read_log)
        return self

    def is_connected(self):
        """Whether it answers. It does so before it knows whether the nodes are ready."""
        assert self.process.poll() is None, self.read_log()
        line = http.client.HTTPConnection(self.address, timeout=1)
        with contextlib.closing(line), contextlib.suppress(OSError):
            line.request("GET", "/health")
            return line.getresponse().status > 0

    def read_log(self):
        self.log.seek(0)
        return self.log.read()

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.socket.close()
        self.log.close()
        self.folder.cleanup()

    def url(self, path="/"):
        return f"http://{self.address}{path}"


@contextlib.contextmanager
def cluster(program, nats, guide, *options):
    """A balancer and the nodes, which are all ready."""
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(Node(program, nats, name, *options)) for name in NAMES]
        balancer = stack.enter_context(Balancer(guide, nodes))
        yield balancer, nodes
