"""One client with a connection of its own, which asks until it has an answer.

It speaks HTTP over the server's unix socket, whose name stays the same however often the server is
started again.
"""

import json
import random
import socket
import time

# Nothing takes that long: an answer that does not come by then never comes.
ANSWER_MAX = 60
# How long a server may be away: far above what a start takes.
AWAY_MAX = 120


class Gone(Exception):
    """The server went away, or was not there. Whether it did what was asked is not known."""


class Refused(Exception):
    """An answer that no kill explains."""


class Answer:
    def __init__(self, status, body):
        self.status = status
        self.body = json.loads(body) if body.startswith((b"{", b"[")) else body

    @property
    def code(self):
        return self.body.get("code") if isinstance(self.body, dict) else None


class Connection:
    """Requests and answers with a length, no more of HTTP than that: thousands of them on two cores."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(ANSWER_MAX)
        self.socket.connect(path)
        self.answers = self.socket.makefile("rb")

    def send(self, method, path, headers, body):
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def answer(self):
        status, length = int(self.line().split()[1]), 0
        while line := self.line():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = self.answers.read(length)
        if len(body) < length:
            raise EOFError
        return Answer(status, body)

    def line(self):
        line = self.answers.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError
        return line[:-2]

    def close(self):
        self.answers.close()
        self.socket.close()


class Client:
    def __init__(self, path, sent=lambda: None):
        self.path, self.sent, self.connection, self.retries = path, sent, None, 0

    def ask(self, method, path, body=None, headers=()):
        content = b"" if body is None else json.dumps(body).encode()
        try:
            self.connection = self.connection or Connection(self.path)
            headers = {"Content-Type": "application/json", **dict(headers)}
            self.connection.send(method, path, headers, content)
            self.sent()
            return self.connection.answer()
        except socket.timeout as error:
            raise Refused(f"{method} {path} had no answer within {ANSWER_MAX} s") from error
        except (OSError, EOFError) as error:
            self.close()
            raise Gone from error

    def insist(self, method, path, body=None, headers=()):
        """The same again until there is an answer that counts."""
        until = time.monotonic() + AWAY_MAX
        while time.monotonic() < until:
            try:
                answer = self.ask(method, path, body, headers)
                if not passing(answer):
                    return answer
            except Gone:
                pass
            self.retries += 1
            time.sleep(random.uniform(0.002, 0.02))
        raise Refused(f"{method} {path} had no answer that counts for {AWAY_MAX} s")

    def change(self, method, path, body, key, expected=(200, 201, 202), **headers):
        """A change under a key, so that however often it is asked for it is done once."""
        answer = self.insist(method, path, body, {"Idempotency-Key": key, **headers})
        if answer.status not in expected:
            raise Refused(f"{method} {path} of {key} was answered {answer.status}: {answer.body}")
        return answer

    def get(self, path):
        answer = self.insist("GET", path)
        if answer.status != 200:
            raise Refused(f"GET {path} was answered {answer.status}: {answer.body}")
        return answer.body

    def pages(self, path):
        """Everything of a list."""
        joint, cursor = "&" if "?" in path else "?", ""
        while cursor is not None:
            page = self.get(f"{path}{joint}limit=500{cursor}")
            yield from page["items"]
            cursor = page.get("next_cursor") and f"&cursor={page['next_cursor']}"

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None


def passing(answer):
    """A state of the server that ends by itself: it starts, it stops, somebody is at it."""
    return answer.status == 503 or answer.code == "key_in_flight"
