"""Presents a wrong token, in its first process."""
import json, os, socket, time
stream = socket.socket(socket.AF_UNIX)
stream.connect(os.environ["OSTLER_SOCKET"])
good = os.environ["OSTLER_GENERATION"] != "1"
token = os.environ["OSTLER_TOKEN"] if good else "0" * 32
stream.sendall(json.dumps({"type": "ready", "token": token}).encode() + b"\n")
while not good:
    time.sleep(1)
for line in stream.makefile("r"):
    message = json.loads(line)
    if message["type"] == "query":
        answer = {"type": "complete", "requestId": message["requestId"], "result": message["payload"]}
        stream.sendall(json.dumps(answer).encode() + b"\n")
    elif message["type"] == "shutdown":
        break
