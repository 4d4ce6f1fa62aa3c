"""Tells and logs texts of any length."""
from lines import complete, send, serve


def progress(query):
    for content in ["small", "x" * query["payload"]]:
        send("progress", requestId=query["requestId"], content=content)
    complete(query)


def log(query):
    send("log", requestId=query["requestId"], level="warning", message=query["payload"])
    complete(query)


def log_at_length(query):
    send("log", requestId=query["requestId"], message="é" * query["payload"])
    complete(query)


serve(progress, log, log_at_length)
