"""The echo worker of frames, without the SDK and without a control stream."""
import json, os, socket, struct
HEADER = struct.Struct("<IBBHQII")
stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))
incoming = stream.makefile("rb")

def send(kind, id, body=b"", flags=0):
    stream.sendall(HEADER.pack(20 + len(body), kind, flags, 0, id, 0, 0))
    stream.sendall(body)

stream.sendall(json.dumps({"type": "ready", "wire": "binary"}).encode() + b"\n")
while head := incoming.read(24):
    length, kind, flags, code, id, a, b = HEADER.unpack(head)
    rest = incoming.read(length - 20)
    if kind == 0x01:
        send(0x84, id, memoryview(rest)[a:], flags & 0x80)
    elif kind == 0x05:
        send(0x8A, id)
    elif kind == 0x03:
        break
