"""A worker with the base messages and nothing else: no SDK, no optional message, no extra key.

To the worker: query, cancel, shutdown, health_check. From it: ready, session, message, complete,
error, shutdown_ack, health_ok. This is all that a worker in another language has to have.
"""
import json, os, select, socket, time

# The stream is inherited, or it is a socket to connect to; only then does `ready` carry a key.
token = {}
if "OSTLER_FD" in os.environ:
    stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))
else:
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(os.environ["OSTLER_SOCKET"])
    token = {"token": os.environ["OSTLER_TOKEN"]}
lines, unread = [], b""  # whole lines that came, and the beginning of the next


def send(type, **keys):
    # allow_nan: Infinity and NaN are not JSON, better an error than a broken stream.
    stream.sendall(json.dumps({"type": type, **keys}, allow_nan=False).encode() + b"\n")


def read():
    """Take in what has come. False: the stream has ended, or was reset, which is the same."""
    global unread
    try:
        data = stream.recv(65536)
    except ConnectionResetError:
        data = b""
    *whole, unread = (unread + data).split(b"\n")
    lines.extend(json.loads(line) for line in whole)
    return bool(data)


def cancelled(id):
    """Look, without waiting, whether a cancel of this request has come."""
    while select.select([stream], [], [], 0)[0] and read():
        pass
    return any(m["type"] == "cancel" and m["requestId"] == id for m in lines)


def answer(id, payload):
    """{"count": n} streams n numbers, all else is echoed."""
    send("session", requestId=id, sessionId=f"session-{id}")
    if isinstance(payload, dict) and isinstance(payload.get("count"), int):
        for n in range(payload["count"]):
            if cancelled(id):
                return send("error", requestId=id, error="cancelled")
            send("message", requestId=id, content={"n": n})
    send("complete", requestId=id, result=payload)


started, served = time.monotonic(), 0
send("ready", **token)
while lines or read():
    message = lines.pop(0) if lines else {"type": None}
    if message["type"] == "query":
        try:
            answer(message["requestId"], message.get("payload"))
        except ValueError as problem:
            send("error", requestId=message["requestId"], error=str(problem))
        served += 1
    elif message["type"] == "health_check":
        send("health_ok", uptime=time.monotonic() - started, queriesProcessed=served)
    elif message["type"] == "shutdown":
        send("shutdown_ack")
        break
