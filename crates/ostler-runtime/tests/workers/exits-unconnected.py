"""Its first process exits before its data stream is connected; perhaps its control stream was."""
import json, os, socket, sys


def connect(**first):
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(os.environ["OSTLER_SOCKET"])
    first["token"] = os.environ["OSTLER_TOKEN"]
    stream.sendall(json.dumps(first).encode() + b"\n")
    return stream


if os.environ["OSTLER_GENERATION"] == "1":
    if "CONTROL_FIRST" in os.environ:
        connect(type="control")
    sys.exit("no module named horses")
stream = connect(type="ready")
for line in stream.makefile("r"):
    message = json.loads(line)
    if message["type"] == "query":
        answer = {"type": "complete", "requestId": message["requestId"], "result": message["payload"]}
        stream.sendall(json.dumps(answer).encode() + b"\n")
    elif message["type"] == "shutdown":
        break
