"""Calls and calls, and reads none of the answers."""
import signal

from lines import send, serve


def call_and_call(query):
    for n in range(20_000):
        send("call", callId=str(n + 1), pool="nowhere", function="any", answerOn=query["payload"])
    signal.pause()


serve(call_and_call, control=True)
