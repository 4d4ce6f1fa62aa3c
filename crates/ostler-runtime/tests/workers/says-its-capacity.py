"""Announces a capacity, and answers a request once it holds as many as it is told to."""
import json, os, socket
stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))
lines = stream.makefile("r", newline="\n")

def send(**message):
    stream.sendall(json.dumps(message).encode() + b"\n")

send(type="ready", capacity=int(os.environ["SAYS"]))
held = []
for line in lines:
    message = json.loads(line)
    if message["type"] == "query":
        held.append(message["requestId"])
        if len(held) == message["payload"]:
            for id in held:
                send(type="complete", requestId=id, result=len(held))
            held.clear()
    elif message["type"] == "health_check":
        send(type="health_ok")
    elif message["type"] == "shutdown":
        break
