"""A relay that stops the bytes of a large request until a test lets them continue."""

import contextlib
import socket
import socketserver
import threading

# Small, so that a client knows soon that its bytes are not read.
BUFFER = 16 * 1024
PATIENCE = 60


class Relay(socketserver.ThreadingTCPServer):
    """Forwards connections, on a port of its own, to a server. Stops each after `most` bytes of the client until `release`."""

    daemon_threads = True

    def __init__(self, address, most):
        super().__init__(("127.0.0.1", 0), Exchange, bind_and_activate=False)
        # Connections have the buffer of their listener.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self.server_bind()
        self.server_activate()
        self.upstream, self.most = address, most
        self.released = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.released.set()
        self.shutdown()
        self.server_close()

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def release(self):
        self.released.set()

    def handle_error(self, request, client_address):
        """A browser may close a connection at any time."""


class Exchange(socketserver.BaseRequestHandler):
    """One connection."""

    def handle(self):
        host, port = self.server.upstream.split(":")
        with socket.create_connection((host, int(port))) as upstream:
            threading.Thread(target=self.forward_answers, args=[upstream], daemon=True).start()
            count = 0
            while piece := self.request.recv(BUFFER):
                count += len(piece)
                if count > self.server.most:
                    self.server.released.wait(PATIENCE)
                upstream.sendall(piece)

    def forward_answers(self, upstream):
        with contextlib.suppress(OSError):
            while piece := upstream.recv(BUFFER):
                self.request.sendall(piece)
            self.request.shutdown(socket.SHUT_RDWR)
