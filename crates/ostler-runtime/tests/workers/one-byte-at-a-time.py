"""Answers one byte at a time, each after the pause that its argument tells in milliseconds."""
import json, os, socket, time
stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))
lines = stream.makefile("r", newline="\n")

def send(pause, **message):
    for byte in json.dumps(message).encode() + b"\n":
        time.sleep(pause)
        stream.sendall(bytes([byte]))

send(0, type="ready")
for line in lines:
    message = json.loads(line)
    if message["type"] == "query":
        pause = message["payload"] / 1000
        send(pause, type="complete", requestId=message["requestId"], result=message["payload"])
    elif message["type"] == "shutdown":
        break
