"""One request at a time; gives back what it has not begun, if the yard says that it is generous.

`retry` fails with an error that may be tried again and `hold` ends, both when they are told to."""
import json, os, select, socket, sys

from lines import complete, send, stream
from yard import given

control = socket.socket(fileno=int(os.environ["OSTLER_CTL_FD"]))
unread = {stream: b"", control: b""}
waiting = []


def take_in(message):
    if message["type"] == "query":
        waiting.append(message)
    elif message["type"] == "withdraw" and given("generous"):
        give_back(message["requestId"])
    elif message["type"] == "shutdown":
        sys.exit()


def give_back(id):
    for query in waiting[1:]:
        if query["requestId"] == id:
            waiting.remove(query)
            answer = {"type": "cancelled", "requestId": id, "started": False}
            control.sendall(json.dumps(answer).encode() + b"\n")


def work():
    query = waiting[0]
    match query["function"]:
        case "quick":
            complete(waiting.pop(0))
        case "retry" if given("fail"):
            error = {"code": "busy", "message": "come back later", "retryable": True}
            send("error", requestId=waiting.pop(0)["requestId"], error=error)
        case "hold" if given("go"):
            complete(waiting.pop(0))


send("ready", control=True, withdraw=True)
while True:
    for readable in select.select([stream, control], [], [], 0.002)[0]:
        read = readable.recv(1 << 16)
        if not read:
            sys.exit()
        *whole, unread[readable] = (unread[readable] + read).split(b"\n")
        for line in whole:
            take_in(json.loads(line))
    if waiting:
        work()
