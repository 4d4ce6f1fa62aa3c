"""The server under test: started, killed, started again in one directory, and what it leaves behind."""

import os
import shutil
import signal
import subprocess
import time

from client import Client, Gone
from journal import Journal

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MARK = "CHAOS_BOOT"
START_MAX = 60
STOP_MAX = 60
# Shims notice the server's death by themselves; this is far above what they take.
LEAVE_MAX = 20

CONFIG = """\
version = 1

[server]
listen = "127.0.0.1:0"

[store]
{store}

[pools.work]
python = "work.py"
size = 4
# Crashes are what this is about: they shall neither slow the pool down nor stop it.
restart_max = 10000
backoff_min = "1ms"
backoff_max = "20ms"
quarantine = 0
gang_patience = "200ms"
env = {{ CHAOS_JOURNAL = "{journal}" }}
env_pass = ["{mark}"]
"""


class Failed(Exception):
    """The server did what no kill excuses."""


def binary(named):
    """The one named, else the one that was built last."""
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    found = os.path.abspath(named or os.path.join(target, "debug", "ostler"))
    if not os.access(found, os.X_OK):
        raise SystemExit(f"there is no {found}; build it with: cargo build -p ostler")
    return found


class Server:
    def __init__(self, program, site, store):
        self.program, self.site, self.boots, self.process = program, site, 0, None
        self.socket = os.path.join(site, ".ostler", "ostler.sock")
        self.log = os.path.join(site, "log")
        self.journal = Journal(os.path.join(site, "workers"))
        for name in ("work.py", "journal.py"):
            shutil.copy(os.path.join(HERE, name), site)
        with open(os.path.join(site, "ostler.toml"), "w") as file:
            file.write(CONFIG.format(store=store, journal=self.journal.path, mark=MARK))

    def start(self):
        self.boots += 1
        environment = {**os.environ, MARK: self.mark(self.boots), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("OSTLER_CONFIG", None)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "serve"], cwd=self.site, env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def mark(self, boot):
        return f"{self.site}#{boot}#"

    def wait_until_it_answers(self):
        until = time.monotonic() + START_MAX
        while not self.answers():
            if self.process.poll() is not None:
                raise Failed(f"the server ended with {self.process.returncode}")
            if time.monotonic() > until:
                raise Failed("the server does not answer")
            time.sleep(0.005)

    def answers(self):
        client = Client(self.socket)
        try:
            return client.ask("GET", "/livez").status == 200
        except Gone:
            return False
        finally:
            client.close()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """As its operator would: it must end by itself, and well."""
        self.process.terminate()
        try:
            code = self.process.wait(STOP_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed("the server does not stop") from None
        if code != 0:
            raise Failed(f"the server stopped with {code}")

    def last_words(self):
        with open(self.log, errors="replace") as file:
            return "".join(file.readlines()[-12:])

    def run(self, *arguments):
        """The command, as somebody beside the server."""
        return subprocess.run([self.program, *arguments], cwd=self.site, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    def left_behind(self, boots):
        """Processes of these boots that do not go away."""
        marks = [f"{MARK}={self.mark(boot)}".encode() for boot in boots]
        until = time.monotonic() + LEAVE_MAX
        while left := [pid for pid in processes() if carries(pid, marks)]:
            if time.monotonic() > until:
                return left
            time.sleep(0.02)
        return []

    def end(self):
        """Whatever happened before, nothing stays."""
        if self.process and self.process.poll() is None:
            self.kill()
        for pid in self.left_behind(range(1, self.boots + 1)):
            os.kill(pid, signal.SIGKILL)
        self.journal.close()


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def carries(pid, marks):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError:
        return False
    return any(mark in environment for mark in marks)
