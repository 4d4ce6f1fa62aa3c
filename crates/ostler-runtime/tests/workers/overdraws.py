"""Says that it honours credit, and does not."""
from lines import send, serve


def pour(query):
    size, chunks = query["payload"]
    for _ in range(chunks):
        send("message", requestId=query["requestId"], content="x" * size)


serve(pour, credit=True)
