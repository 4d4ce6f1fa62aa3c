"""A worker of lines that knows the base messages only, and talks on its standard output."""
import json, os, socket
print("loading")
if "OSTLER_FD" in os.environ:
    stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))
else:
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(os.environ["OSTLER_SOCKET"])
lines = stream.makefile("r", encoding="utf-8", newline="\n")

def send(type, **keys):
    print("{", type, flush=True)
    stream.sendall(json.dumps({"type": type, **keys}).encode() + b"\n")

send("ready", **({"token": os.environ["OSTLER_TOKEN"]} if "OSTLER_TOKEN" in os.environ else {}))
for line in lines:
    message = json.loads(line)
    kind, id, payload = message["type"], message.get("requestId"), message.get("payload")
    if kind == "query" and message["function"] == "echo":
        send("complete", requestId=id, result=payload)
    elif kind == "query" and message["function"] == "count":
        for n in range(payload):
            send("message", requestId=id, content=n)
        send("complete", requestId=id, result="done")
    elif kind == "query" and message["function"] == "wait":
        lines.readline()  # the next line is its cancel
        send("error", requestId=id, error="interrupted")
    elif kind == "query":
        send("error", requestId=id, error="no such function")
    elif kind == "health_check":
        send("health_ok", uptime=1, queriesProcessed=0)
    elif kind == "shutdown":
        send("shutdown_ack")
        break
