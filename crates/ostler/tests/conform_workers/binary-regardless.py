"""The echo worker of frames, whatever wires are offered."""
import json, os, socket, struct

HEADER = struct.Struct("<IBBHQII")
stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))
incoming = stream.makefile("rb")


def send(kind, id, body=b"", meta=b"", flags=0):
    length = 20 + len(meta) + len(body)
    stream.sendall(HEADER.pack(length, kind, flags, 0, id, len(meta), 0) + meta + body)


ready = {"type": "ready", "wire": "binary", "functions": [{"name": "echo"}]}
stream.sendall(json.dumps(ready).encode() + b"\n")
while head := incoming.read(24):
    length, kind, flags, code, id, a, b = HEADER.unpack(head)
    rest = incoming.read(length - 20)
    if kind == 0x01 and code == 0:
        send(0x84, id, rest[a:], flags=flags & 0x80)
    elif kind == 0x01:
        send(0x85, id, meta=b'{"code":"function_not_found","message":"no such function"}')
    elif kind == 0x04:
        send(0x88, 0)
    elif kind == 0x05:
        send(0x8A, id)
    elif kind == 0x03:
        send(0x87, 0)
        break
