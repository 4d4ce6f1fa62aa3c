"""What the worker's loop costs beside the plainest loop that could do its job.

    python3 sdk/python/bench/echo.py [rounds]

Runs the same client against a bare blocking loop (frame in, frame out, no
functions, no cancel) and against real workers, interleaved, and prints the
medians of rate and processor time beside those of the bare loop.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
sys.path.insert(0, PACKAGE)

from ostler import wire  # noqa: E402

BARE = """
import socket, struct, sys

def echo(data):
    return data

def serve(sock):
    header = struct.Struct("<IBBHQII")
    unpack, pack = header.unpack_from, header.pack
    recv, send = sock.recv, sock.sendall
    send(b'{"type":"ready"}\\n')
    left = b""
    while True:
        d = recv(65536)
        if not d:
            break
        if left:
            d = left + d
        off, total = 0, len(d)
        while total - off >= 24:
            length, kind, flags, code, rid, a, b = unpack(d, off)
            end = off + 4 + length
            if end > total:
                break
            body = echo(d[off + 24:end])
            send(pack(20 + len(body), 0x84, flags, 0, rid, 0, 0) + body)
            off = end
        left = d[off:] if off < total else b""

serve(socket.socket(fileno=int(sys.argv[1])))
"""

FUNCTIONS = """
import ostler

@ostler.function
def raw(data: bytes):
    return data

@ostler.function
def echo(data):
    return data
"""


class Peer:
    """A worker process at the other end of a socket pair."""

    def __init__(self, command, **environ):
        self.data, far = socket.socketpair()
        self.control, far_control = socket.socketpair()
        numbers = {"FD": far.fileno(), "CTL": far_control.fileno()}
        command = [part.format(**numbers) for part in command]
        environ = {key: value.format(**numbers) for key, value in environ.items()}
        keep = (far.fileno(), far_control.fileno())
        self.process = subprocess.Popen(command, env={**os.environ, **environ}, pass_fds=keep)
        far.close()
        far_control.close()
        while not self.data.recv(65536).endswith(b"\n"):
            pass

    def cpu(self):
        """Seconds of processor time it has used."""
        with open(f"/proc/{self.process.pid}/schedstat") as file:
            return int(file.read().split()[0]) / 1e9

    def rate(self, frame, depth, seconds):
        """(answers per second, processor time per answer) with ``depth`` in flight."""
        cpu = self.cpu()
        batch, size = frame * depth, len(frame) * depth
        done, end = 0, time.perf_counter() + seconds
        began = time.perf_counter()
        while time.perf_counter() < end:
            self.data.sendall(batch)
            got = 0
            while got < size:
                got += len(self.data.recv(65536))
            done += depth
        return done / (time.perf_counter() - began), (self.cpu() - cpu) / done

    def close(self):
        self.data.close()
        self.control.close()
        self.process.wait()


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "functions.py")
        with open(path, "w") as file:
            file.write(FUNCTIONS)
        environ = {
            "PYTHONPATH": PACKAGE,
            "OSTLER_FD": "{FD}",
            "OSTLER_CTL_FD": "{CTL}",
            "OSTLER_WIRES": "binary,ndjson",
        }
        bare = Peer([sys.executable, "-c", BARE.replace("{", "{{").replace("}", "}}"), "{FD}"])
        worker = Peer([sys.executable, "-m", "ostler.worker", path], **environ)
        text = b'"' + b"x" * 62 + b'"'
        cases = {
            "bare loop": (bare, wire.encode(wire.QUERY, 1, wire.RAW, body=text)),
            "worker, bytes": (worker, wire.encode(wire.QUERY, 1, wire.RAW, body=text)),
            "worker, JSON": (worker, wire.encode(wire.QUERY, 1, 0, body=text, code=1)),
        }
        for depth in (1, 2, 16):
            report(depth, measure(cases, depth, rounds))
        bare.close()
        worker.close()


def measure(cases, depth, rounds):
    seen = {name: [] for name in cases}
    for _ in range(rounds):
        for name, (peer, frame) in cases.items():
            seen[name].append(peer.rate(frame, depth, 0.4))
    return {name: [statistics.median(column) for column in zip(*rows)] for name, rows in seen.items()}


def report(depth, medians):
    base_rate, base_cpu = medians["bare loop"]
    for name, (rate, cpu) in medians.items():
        print(
            f"depth {depth:2}  {name:14} {rate:9.0f}/s = {rate / base_rate:.2f}"
            f"   cpu {cpu * 1e6:6.2f} us, bare/this {base_cpu / cpu:.2f}"
        )


if __name__ == "__main__":
    main()
