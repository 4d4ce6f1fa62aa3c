"""Streams lines as far as its credit goes, and leaves in the yard how far that was."""
import json, os, socket
stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))
lines = stream.makefile("r", newline="\n")

def send(**message):
    stream.sendall(json.dumps(message).encode() + b"\n")

def leave(count):
    with open(os.path.join(os.environ["YARD"], "spent"), "a") as ledger:
        ledger.write(f"{count}\n")

send(type="ready", credit=True)
for line in lines:
    message = json.loads(line)
    if message["type"] == "shutdown":
        break
    if message["type"] != "query":
        continue
    id, sent, credit = message["requestId"], 0, 256
    while True:
        while sent < credit:
            send(type="message", requestId=id, content=sent)
            sent += 1
        leave(sent)
        message = json.loads(lines.readline())
        if message["type"] == "credit":
            credit += message["chunks"]
        elif message["type"] == "cancel":
            break
    send(type="cancelled", requestId=id)
