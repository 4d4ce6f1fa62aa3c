"""The plain side of a worker of lines, for workers with one vice each."""
import json, os, socket

from yard import await_sign

stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))
incoming = stream.makefile("r", encoding="utf-8", newline="\n")


def send(type, **keys):
    stream.sendall(json.dumps({"type": type, **keys}).encode() + b"\n")


def complete(query, result=None):
    send("complete", requestId=query["requestId"], result=result)


def echo(query):
    complete(query, query["payload"])


def hold(query):
    await_sign("go")
    complete(query, "held")


def serve(*functions, **ready):
    """Each function gets the query and answers it, or does not."""
    known = {function.__name__: function for function in (echo, hold, *functions)}
    send("ready", **ready)
    for line in incoming:
        message = json.loads(line)
        if message["type"] == "query":
            known[message["function"]](message)
        elif message["type"] == "health_check":
            send("health_ok")
        elif message["type"] == "shutdown":
            break
