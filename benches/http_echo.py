"""HTTP echo, side by side with another server in one run: medians and ratios.

    cargo build --release
    python3 benches/http_echo.py --against 'COMMAND' --url http://127.0.0.1:PORT/

COMMAND starts the other server, which answers a POST at that address with its body.
Both get the same load from `wrk`, in turns: 32 connections for throughput, one for latency.
What counts are the ratios of one run; absolute figures move with the machine.
"""

import argparse
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
BODY = b"x" * 64
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.body = string.rep("x", 64)
done = function(s, latency, _)
  local e = s.errors
  io.write(string.format('{"rps": %f, "p50": %f, "p99": %f, "errors": %d}\\n',
    s.requests / (s.duration / 1e6), latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def load(script, url, connections, seconds):
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", script, url]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures = json.loads(out.strip().splitlines()[-1])
    if figures["errors"]:
        sys.exit(f"{url}: {figures['errors']:.0f} errors under load")
    return figures


def answers(url):
    request = urllib.request.Request(url, BODY, {"Content-Type": "application/octet-stream"})
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.read() == BODY
    except (urllib.error.URLError, ConnectionError):
        return False


def wait_for(url, process):
    while not answers(url):
        if process.poll() is not None:
            sys.exit(f"the server for {url} ended with {process.returncode}")
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--against", required=True, help="command of the other server")
    parser.add_argument("--url", required=True, help="where it answers")
    parser.add_argument("--ostler", default=os.path.join(HERE, "../target/release/ostler"))
    parser.add_argument("--listen", default="127.0.0.1:6799")
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ours = f"http://{options.listen}/api/pools/echo/call/echo"
    serve = [os.path.abspath(options.ostler), "serve", os.path.join(HERE, "echo.py"),
             "--size", "2", "--listen", options.listen]
    with tempfile.TemporaryDirectory() as directory:
        script = os.path.join(directory, "post.lua")
        with open(script, "w") as file:
            file.write(SCRIPT)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        servers = [
            subprocess.Popen(shlex.split(options.against), start_new_session=True, **quiet),
            subprocess.Popen(serve, cwd=directory, start_new_session=True, **quiet),
        ]
        try:
            for url, server in zip((options.url, ours), servers):
                wait_for(url, server)
            report(script, options, ours)
        finally:
            for server in servers:
                os.killpg(server.pid, signal.SIGTERM)
                server.wait()


def report(script, options, ours):
    figures = {}
    for _ in range(options.rounds):
        for connections in (32, 1):
            for who, url in (("other", options.url), ("ostler", ours)):
                figures.setdefault((who, connections), []).append(
                    load(script, url, connections, options.seconds))

    def median(who, connections, key):
        return statistics.median(f[key] for f in figures[who, connections])

    for connections, key, unit in ((32, "rps", "requests/s"), (1, "p50", "µs p50"), (1, "p99", "µs p99")):
        other, own = (median(who, connections, key) for who in ("other", "ostler"))
        print(f"{connections:3} connections, {unit:10}  other {other:9.0f}  "
              f"ostler {own:9.0f}  ratio {own / other:.2f}")


if __name__ == "__main__":
    main()
