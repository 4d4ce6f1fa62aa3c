"""Makes calls to the host at moments when nobody waits for them any more."""
import json

from lines import incoming, send, serve
from yard import note


def call_after_cancel(query):
    id = query["requestId"]
    note("begun", "call_after_cancel")
    cancel = json.loads(incoming.readline())
    assert cancel == {"type": "cancel", "requestId": id}, cancel
    send("call", callId="1", pool="host", function="endless", requestId=id)
    answer = json.loads(incoming.readline())
    note("answers", answer["error"]["code"])
    send("cancelled", requestId=id)


def call_for_nobody(query):
    send("call", callId="1", pool="host", function="endless")


serve(call_after_cancel, call_for_nobody)
