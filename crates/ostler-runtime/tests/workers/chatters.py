"""Says much that nobody asked for: unknown messages before each answer, a chunk behind it."""
import json, os, socket
stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))

def send(**message):
    stream.sendall(json.dumps(message).encode() + b"\n")

send(type="ready", futurism=True)
for line in stream.makefile("r"):
    message = json.loads(line)
    if message["type"] == "query":
        stream.sendall(b'{"type":"weather","mood":"fine"}\n' * 50_000)
        send(type="complete", requestId=message["requestId"], result=message["payload"])
        send(type="message", requestId=message["requestId"], content="late")
    elif message["type"] == "shutdown":
        break
