"""Streams in frames as far as its credit goes, and leaves a byte in the yard for each ping."""
import json, os, socket, struct
HEADER = struct.Struct("<IBBHQII")
stream = socket.socket(fileno=int(os.environ["OSTLER_FD"]))
incoming = stream.makefile("rb")

def leave(file):
    with open(os.path.join(os.environ["YARD"], file), "ab") as ledger:
        ledger.write(b".")

def send(kind, id, body=b"", b=0):
    stream.sendall(HEADER.pack(20 + len(body), kind, 0, 0, id, 0, b) + body)

stream.sendall(json.dumps({"type": "ready", "wire": "binary"}).encode() + b"\n")
while head := incoming.read(24):
    length, kind, flags, code, id, a, b = HEADER.unpack(head)
    incoming.read(length - 20)
    if kind == 0x01:
        for seq in range(256):
            leave("produced")
            send(0x83, id, b"1", seq)
    elif kind == 0x02:
        send(0x86, id, b=256)
    elif kind == 0x05:
        leave("pings")
        send(0x8A, id)
    elif kind == 0x03:
        break
