"""Serves the pool `POOL` on a socket of its own and calls it: python3 -m unittest"""

import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

OSTLER = os.environ.get("OSTLER", "ostler")  # the command, if it is not in PATH
HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 30  # seconds


class Server:
    """`ostler serve` with the configuration of this directory."""

    def __init__(self):
        if shutil.which(OSTLER) is None:
            raise FileNotFoundError(f"no command {OSTLER!r}: put it in PATH, or set OSTLER to its path")
        self.directory = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.directory.name, "ostler.sock")
        self.log = open(os.path.join(self.directory.name, "log"), "w+")
        self.process = subprocess.Popen(
            [OSTLER, "serve", "--config", "ostler.toml", "--listen", "127.0.0.1:0"],
            cwd=HERE,
            env={**os.environ, "SOCKET": self.socket},
            stdout=self.log,
            stderr=self.log,
        )

    def call(self, function, arguments):
        """Status and answer. Calls that come before the workers are ready wait for them."""
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        connection.sock = self.connect()
        try:
            path = f"/api/pools/POOL/call/{function}"
            headers = {"Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(arguments), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def connect(self):
        """A connection, as soon as the server listens."""
        deadline = time.monotonic() + PATIENCE
        while True:
            stream = socket.socket(socket.AF_UNIX)
            stream.settimeout(PATIENCE)
            try:
                stream.connect(self.socket)
                return stream
            except OSError:
                stream.close()
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"the server does not answer:\n{self.said()}")
                time.sleep(0.01)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.log.close()
        self.directory.cleanup()


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)

    def test_greets_by_name(self):
        self.assertEqual(self.server.call("greet", {"name": "Ada"}), (200, "hello, Ada"))

    def test_counts(self):
        self.assertEqual(self.server.call("count", [3]), (200, [0, 1, 2]))

    def test_refuses_arguments_that_do_not_fit(self):
        status, problem = self.server.call("count", {"n": "many"})
        self.assertEqual((status, problem["code"]), (422, "invalid_arguments"))


if __name__ == "__main__":
    unittest.main()
