"""Fails at a key that it does not know."""
from base import Worker

class Vice(Worker):
    keys = {"type", "requestId", "function", "payload", "stream", "deadlineMs", "credit"}

    def on_query(self, query):
        if query.keys() - self.keys:
            raise TypeError("unexpected keyword argument")
        super().on_query(query)

Vice().run()
