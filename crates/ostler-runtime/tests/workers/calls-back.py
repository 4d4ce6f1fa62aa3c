"""A worker of lines that answers with what a call of its own brought."""
import json, os, socket
stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))
lines = stream.makefile("r", newline="\n")

def send(**message):
    stream.sendall(json.dumps(message).encode() + b"\n")

send(type="ready")
for line in lines:
    message = json.loads(line)
    if message["type"] == "query":
        id, (pool, function, payload) = message["requestId"], message["payload"]
        arguments = {} if payload is None else {"payload": payload}
        send(type="call", callId="7", pool=pool, function=function, requestId=id, **arguments)
        answer = json.loads(lines.readline())
        assert answer["type"] == "call_result" and answer["callId"] == "7", answer
        send(type="complete", requestId=id, result=answer.get("result", answer.get("error")))
    elif message["type"] == "health_check":
        send(type="health_ok")
    elif message["type"] == "shutdown":
        break
