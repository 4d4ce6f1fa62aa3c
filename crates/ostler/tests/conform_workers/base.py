"""A well-behaved worker of lines with every option. A vice is what a script overrides.

Functions: echo, count (a stream within its credit) and slow (until it is cancelled). One thread
waits for both streams, so it does several things at a time and never blocks in one.
"""
import json, os, selectors, socket, sys
from collections import deque

# Which process of a run this is. The tester starts the next one after a check that uses one up.
GENERATION = int(os.environ["OSTLER_GENERATION"])


class Worker:
    control_stream = True
    capacity = 2
    functions = [{"name": "echo"}, {"name": "count", "streaming": True}, {"name": "slow"}]
    announced = {"credit": True, "withdraw": True}

    def __init__(self):
        self.running, self.waiting, self.leaving = {}, deque(), False
        self.buffers, self.batch = {}, deque()
        self.data, self.control = self.open("OSTLER_FD"), None
        if self.control_stream:
            self.control = self.open("OSTLER_CTL_FD")
            if self.token():
                self.say(self.control, type="control", **self.token())

    def token(self):
        return {"token": os.environ["OSTLER_TOKEN"]} if "OSTLER_TOKEN" in os.environ else {}

    def open(self, variable):
        if variable in os.environ:
            stream = socket.socket(fileno=int(os.environ[variable]))
        else:
            stream = socket.socket(socket.AF_UNIX)
            stream.connect(os.environ["OSTLER_SOCKET"])
        stream.setblocking(True)
        self.buffers[stream] = b""
        return stream

    def say(self, stream, **message):
        stream.sendall(json.dumps(message).encode() + b"\n")

    def send(self, type, **keys):
        self.say(self.data, type=type, **keys)

    def answer_urgently(self, type, **keys):
        self.say(self.control or self.data, type=type, **keys)

    def run(self):
        self.open_up()
        selector = selectors.DefaultSelector()
        for stream in filter(None, (self.data, self.control)):
            selector.register(stream, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if not self.read(key.fileobj):
                    selector.unregister(key.fileobj)

    def open_up(self):
        self.send("ready", **self.ready())

    def ready(self):
        keys = {"capacity": self.capacity, "functions": self.functions, **self.announced}
        return {**keys, **self.token(), "control": self.control is not None}

    def read(self, stream):
        """False: the stream is over."""
        try:
            data = stream.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            self.on_end(stream)
            return False
        *lines, self.buffers[stream] = (self.buffers[stream] + data).split(b"\n")
        self.batch.extend(lines)
        while self.batch:
            self.on_line(self.batch.popleft())
        return True

    def on_end(self, stream):
        os._exit(0)

    def on_line(self, line):
        message = json.loads(line)
        handler = getattr(self, "on_" + message["type"], None)
        if handler is not None:
            handler(message)

    # Requests.

    def on_query(self, query):
        if len(self.running) < self.capacity:
            self.begin(query)
        else:
            self.waiting.append(query)

    def begin(self, query):
        id, name = query["requestId"], query.get("function", "echo")
        self.running[id] = query
        if name == "count":
            query["sent"] = 0
            query.setdefault("credit", {"chunks": 256, "bytes": 1 << 20})
            self.pour(query)
        elif name == "echo":
            self.finish("complete", id, result=self.result(query))
        elif name != "slow":
            error = {"code": "function_not_found", "message": name, "started": False}
            self.finish("error", id, error=error)

    def result(self, query):
        value = query.get("payload")
        return None if isinstance(value, float) else value

    def pour(self, query):
        id, credit, total = query["requestId"], query["credit"], query["payload"]
        while query["sent"] < total and credit["chunks"] > 0 and credit["bytes"] > 0:
            self.send("message", requestId=id, content=query["sent"], seq=query["sent"])
            query["sent"] += 1
            credit["chunks"] -= 1
            credit["bytes"] -= len(str(query["sent"]))
        if query["sent"] >= total:
            self.finish("complete", id, result="done", chunks=query["sent"])

    def finish(self, type, id, **keys):
        self.send(type, requestId=id, **keys)
        self.forget(id)

    def forget(self, id):
        self.running.pop(id, None)
        if self.waiting and len(self.running) < self.capacity:
            self.begin(self.waiting.popleft())
        if self.leaving and not self.running:
            self.leave()

    def on_credit(self, message):
        query = self.running.get(message["requestId"])
        if query is not None:
            query["credit"]["chunks"] += message["chunks"]
            query["credit"]["bytes"] += message["bytes"]
            self.pour(query)

    def on_cancel(self, message):
        id = message["requestId"]
        if id in self.running:
            self.finish("cancelled", id)
        else:
            self.on_withdraw(message)

    def on_withdraw(self, message):
        for query in [q for q in self.waiting if q["requestId"] == message["requestId"]]:
            self.waiting.remove(query)
            self.answer_urgently("cancelled", requestId=query["requestId"], started=False)

    # Signs of life, and the end.

    def on_health_check(self, message):
        self.send("health_ok", uptime=1.5, queriesProcessed=0)

    def on_ping(self, message):
        self.answer_urgently("pong", nonce=message["nonce"])

    def on_shutdown(self, message):
        if not message["graceful"]:
            os._exit(0)
        self.leaving = True
        if not self.running:
            self.leave()

    def leave(self):
        self.send("shutdown_ack")
        sys.exit(0)


if __name__ == "__main__":
    Worker().run()
