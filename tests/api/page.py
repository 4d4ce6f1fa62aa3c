"""Drives a browser over the page of the API: reads what it shows and uses it as a person would.

The browser is spoken to over two pipes, in messages of its own debugging protocol that end in a
zero byte. Nothing listens, and nothing but the standard library is needed.
"""

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from urllib.parse import urlsplit

# A page that takes this long has failed.
LIMIT = 60

SWITCHES = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--no-proxy-server",
    # Whatever is not this machine does not exist.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
]


def out_of_the_way(fd):
    """The same pipe under a number that cannot be one of those the browser wants."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return moved


class Browser:
    def __init__(self, program, profile):
        commands, self.commands = map(out_of_the_way, os.pipe())
        self.answers, answers = map(out_of_the_way, os.pipe())

        def place():
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self.process = subprocess.Popen(
            [program, *SWITCHES, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=place,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=open(os.path.join(profile, "log"), "w"),
            start_new_session=True,
        )
        os.close(commands)
        os.close(answers)
        self.deadline = time.monotonic() + LIMIT
        self.unread = b""
        self.sent = 0
        self.events = []
        self.session = None

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        # Every process of the browser's has this pipe: it ends with the last of them.
        with self.process.stdout as said:
            while select.select([said], [], [], LIMIT)[0] and os.read(said.fileno(), 1 << 16):
                pass

    def message(self):
        while b"\0" not in self.unread:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise AssertionError(f"the browser says nothing; so far: {self.events[-5:]}")
            piece = os.read(self.answers, 1 << 16)
            if not piece:
                raise AssertionError("the browser is gone")
            self.unread += piece
        text, _, self.unread = self.unread.partition(b"\0")
        return json.loads(text)

    def do(self, method, **params):
        self.sent += 1
        command = {"id": self.sent, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.sent:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def open(self, url):
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Network", "Runtime", "Log", "Page"):
            self.do(f"{domain}.enable")
        self.do("Page.navigate", url=url)

    def evaluate(self, expression):
        answer = self.do("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, what, expression):
        """The value of the expression once it has one."""
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            if time.monotonic() > self.deadline:
                page = self.evaluate("document.body.innerText")
                raise AssertionError(f"never seen: {what}; the page shows\n{page}")
            time.sleep(0.02)

    def told(self, method):
        return [event["params"] for event in self.events if event.get("method") == method]


# The route of a function, opened as by a click on its line.
OPENED = """(() => {
  const found = [...document.querySelectorAll("details")].find((route) =>
    route.querySelector("summary code").textContent === "/api/pools/work/call/%s");
  if (found && !found.open) found.querySelector("summary").click();
  return found && found.querySelector("button") ? found.innerText : "";
})()"""

SENT = """(() => {
  const route = [...document.querySelectorAll("details[open]")].find((route) =>
    route.querySelector("summary code").textContent === "/api/pools/work/call/%s");
  route.querySelector("textarea").value = %s;
  [...route.querySelectorAll("button")].find((button) => button.textContent === %s).click();
  return true;
})()"""

SHOWN = """(() => {
  const route = [...document.querySelectorAll("details[open]")].find((route) =>
    route.querySelector("summary code").textContent === "/api/pools/work/call/%s");
  const output = route.querySelector("pre");
  return output.textContent.includes(%s) ? output.className + "|" + output.textContent : "";
})()"""


def shows(what, text, *wanted):
    for words in wanted:
        assert words in text, f"{what} does not show {words!r}:\n{text}"


def sends(browser, function, body, button, wanted):
    browser.evaluate(SENT % (function, json.dumps(body), json.dumps(button)))
    what = f"{wanted} after {button} of {function}"
    return browser.until(what, SHOWN % (function, json.dumps(wanted)))


def check_routes(browser):
    page = browser.until("the routes", "document.querySelector('details') && document.body.innerText")
    shows("the page", page, "pool work", "Says hello.", "/api/events", "/metrics")
    for function in ("nothing", "greet", "add", "count", "reverse", "measure"):
        shows("the page", page, f"/api/pools/work/call/{function}")


def check_parameters(browser):
    greet = browser.until("greet is open", OPENED % "greet")
    shows("greet", greet, "name", "string", '= "world"', "times", "integer", "= 1")
    assert greet.index("name") < greet.index("times"), greet
    add = browser.until("add is open", OPENED % "add")
    shows("add", add, "a *", "b *", "integer")
    reverse = browser.until("reverse is open", OPENED % "reverse")
    shows("reverse", reverse, "application/octet-stream")


def check_calls(browser):
    greeted = sends(browser, "greet", '{"name": "Ada"}', "Send", "hello, Ada")
    assert greeted.startswith("|200 "), greeted
    refused = sends(browser, "add", '{"a": 1}', "Send", "invalid_arguments")
    assert refused.startswith("bad|422 ") and "b is required" in refused, refused
    browser.until("count is open", OPENED % "count")
    counted = sends(browser, "count", '{"n": 2}', "Send as a stream", "event: complete")
    shows("the stream", counted, "event: message\ndata: 0", "event: message\ndata: 1")
    reversed_ = sends(browser, "reverse", "abc", "Send", "cba")
    assert reversed_.startswith("|200 "), reversed_


def check_quiet(browser, url):
    """Nothing went elsewhere, and nothing went wrong unseen."""
    asked = [event["request"]["url"] for event in browser.told("Network.requestWillBeSent")]
    calls = [asked for asked in asked if "/call/" in asked]
    assert len(calls) == 4, asked
    here = urlsplit(url).netloc
    foreign = [asked for asked in asked if urlsplit(asked).netloc != here]
    assert not foreign, f"asked elsewhere: {foreign}"
    thrown = browser.told("Runtime.exceptionThrown")
    assert not thrown, thrown
    # The refused call is told there too; it is an answer.
    entries = [event["entry"] for event in browser.told("Log.entryAdded")]
    errors = [e for e in entries if e["level"] == "error" and "422" not in e["text"]]
    assert not [e for e in errors if "favicon" not in e.get("url", "")], errors


def main():
    program, url, profile = sys.argv[1:]
    browser = Browser(program, profile)
    try:
        browser.open(f"{url}/docs")
        for check in (check_routes, check_parameters, check_calls):
            check(browser)
        check_quiet(browser, url)
    except AssertionError as failure:
        sys.exit(f"the page: {failure}")
    finally:
        browser.close()
    print("the page shows the functions and their parameters, and calls them; nothing was asked elsewhere")


main()
