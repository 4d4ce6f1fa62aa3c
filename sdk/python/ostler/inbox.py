"""The data stream as the main thread reads it.

Between requests the process loop reads the socket itself. While a request
waits for credit or for the answer of a call, the same thread reads here;
frames for later are put aside in order. ``nested`` says who owns the bytes
behind the current request: the loop (False) or this object.
"""

import select
from collections import deque

from .errors import StreamClosed, StreamEnded
from .wire import HEADER, SMALL, check, decode

RECV = 65536  # from 128 KiB up, CPython maps and unmaps a buffer for every call


class Inbox:
    def __init__(self, sock, decoder):
        self.sock = sock
        self.decoder = decoder
        self.poller = select.poll()
        self.poller.register(sock, select.POLLIN)
        # Owned by the loop: the buffer, where the current frame starts, when it came.
        self.data = b""
        self.start = 0
        self.received = 0.0
        self.nested = False
        self.aside = deque()

    def enter(self):
        """Take over from the loop what lies behind the current request."""
        if self.nested:
            return
        length = HEADER.unpack_from(self.data, self.start)[0]
        self.take_over(self.data[self.start + 4 + length :])

    def take_over(self, rest):
        self.nested = True
        self.decoder.rest = b""
        self.aside.extend(self.decoder.feed(rest))

    def give_back(self):
        """Undecoded bytes, for the loop, once nothing is aside."""
        self.nested = False
        rest, self.decoder.rest = self.decoder.rest, b""
        return rest

    def take(self, wanted):
        """Remove and return the frames aside for which ``wanted`` is true."""
        if not self.aside:
            return []
        found = [frame for frame in self.aside if wanted(frame)]
        if found:
            kept = [frame for frame in self.aside if not wanted(frame)]
            self.aside = deque(kept)
        return found

    def wait(self, seconds=None):
        """Block until there is something to read: true then. Consumes nothing."""
        return self.poller.poll(None if seconds is None else seconds * 1000)

    def read(self):
        """Read what is there; at least one byte, or the stream has ended."""
        data = receive(self.sock)
        if not data:
            raise StreamEnded("the server closed the data stream")
        self.aside.extend(self.decoder.feed(data))
        missing = getattr(self.decoder, "missing", lambda: 0)()
        if missing > SMALL:
            self.decoder.rest, whole = b"", read_large(self.sock, self.decoder.rest, missing)
            self.aside.append(decode(whole, 0, len(whole)))

    def next(self):
        while not self.aside:
            self.read()
        return self.aside.popleft()


def receive(sock):
    """Like recv, but a peer that left with data unread has simply ended."""
    try:
        return sock.recv(RECV)
    except (ConnectionResetError, BrokenPipeError):
        return b""


def read_large(sock, begun, missing):
    """The whole of a frame too big for the kept buffer."""
    whole = bytearray(len(begun) + missing)
    whole[: len(begun)] = begun
    _fill(sock, memoryview(whole)[len(begun) :])
    return whole


def read_large_query(sock, data, start, limit):
    """The frame that begins at ``data[start:]``, its body in a buffer of its own."""
    length, kind, flags, code, id, a, b = HEADER.unpack_from(data, start)
    check(length, limit)
    body_at = start + HEADER.size + a
    if a > length - (HEADER.size - 4):
        raise StreamClosed(f"meta of {a} bytes is longer than its frame")
    if body_at > len(data):
        whole = read_large(sock, data[start:], 4 + length - (len(data) - start))
        return decode(whole, 0, len(whole))
    frame = decode(data[start:body_at], 0, body_at - start)
    frame.body = bytearray(length - (HEADER.size - 4) - a)
    have = len(data) - body_at
    frame.body[:have] = data[body_at:]
    _fill(sock, memoryview(frame.body)[have:])
    return frame


def _fill(sock, view):
    while view:
        try:
            got = sock.recv_into(view)
        except (ConnectionResetError, BrokenPipeError):
            got = 0
        if not got:
            raise StreamClosed("the server closed the data stream inside a frame")
        view = view[got:]

