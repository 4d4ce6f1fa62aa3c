"""Streams lines of 8 KiB without any regard for credit, and says when nobody reads them."""
import json, os, select, socket
stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))
lines = stream.makefile("r", newline="\n")

def leave(file, what):
    with open(os.path.join(os.environ["YARD"], file), "a") as ledger:
        ledger.write(what)

def send(**message):
    stream.sendall(json.dumps(message).encode() + b"\n")

def cancelled():
    return select.select([stream], [], [], 0)[0]

send(type="ready")
for line in lines:
    message = json.loads(line)
    if message["type"] == "shutdown":
        break
    if message["type"] != "query":
        continue
    id, blocked = message["requestId"], False
    while message["function"] == "pour" and not cancelled():
        if not select.select([], [stream], [], 1)[1]:
            if not blocked:
                leave("blocked", "once\n")
            blocked = True
            continue
        leave("produced", ".")
        send(type="message", requestId=id, content="x" * 8000)
    send(type="complete", requestId=id, result=message.get("payload"))
