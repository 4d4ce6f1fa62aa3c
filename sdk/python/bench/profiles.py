"""Calls per second of the profiles, with a handler that does nothing.

    python3 sdk/python/bench/profiles.py [rounds]

The client sends ``depth`` requests at once and waits for all; rounds are
interleaved, medians printed. Processor time is that of all threads of the worker.
"""

import os
import statistics
import sys
import tempfile
import time

from echo import PACKAGE, Peer, wire

FUNCTIONS = """
import ostler

@ostler.function(thread_safe=True)
def echo(data):
    return data

@ostler.function
async def aecho(data):
    return data
"""

CASES = {
    "process": ("process", 0),
    "thread": ("thread", 0),
    "async": ("async", 1),
    "async, plain": ("async", 0),
}
CAPACITY = 64


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "functions.py")
        with open(path, "w") as file:
            file.write(FUNCTIONS)
        peers = {name: start(path, profile) for name, (profile, _) in CASES.items()}
        for depth in (1, 8, 64):
            seen = {name: [] for name in CASES}
            for _ in range(rounds):
                for name, (_, code) in CASES.items():
                    seen[name].append(rate(peers[name], code, depth, 0.5))
            for name, rows in seen.items():
                rates, costs = zip(*rows)
                print(f"depth {depth:2}  {name:12} {statistics.median(rates):8.0f}/s"
                      f"   cpu {statistics.median(costs) * 1e6:6.1f} us")
        for peer in peers.values():
            peer.close()


def start(path, profile):
    return Peer(
        [sys.executable, "-m", "ostler.worker", path],
        PYTHONPATH=PACKAGE,
        OSTLER_FD="{FD}",
        OSTLER_CTL_FD="{CTL}",
        OSTLER_WIRES="binary,ndjson",
        OSTLER_PROFILE=profile,
        OSTLER_CAPACITY=str(CAPACITY),
        OSTLER_THREAD_SAFETY="off",
    )


def cpu(pid):
    """Seconds of processor time that the threads of a process have used."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def rate(peer, code, depth, seconds):
    """(answers per second, processor time of one); ids rise, as a server's do."""
    used = cpu(peer.process.pid)
    last = getattr(peer, "last", 0)
    body = b'"' + b"x" * 62 + b'"'
    size = len(wire.encode(wire.COMPLETE, 1, body=body)) * depth
    done, began = 0, time.perf_counter()
    while time.perf_counter() < began + seconds:
        frames = [wire.encode(wire.QUERY, last + n, body=body, code=code) for n in range(1, depth + 1)]
        last += depth
        peer.data.sendall(b"".join(frames))
        got = 0
        while got < size:
            got += len(peer.data.recv(65536))
        done += depth
    peer.last = last
    return done / (time.perf_counter() - began), (cpu(peer.process.pid) - used) / done


if __name__ == "__main__":
    main()
