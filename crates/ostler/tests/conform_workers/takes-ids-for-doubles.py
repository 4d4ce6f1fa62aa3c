"""Reads an id as a number, as a language with one kind of number does."""
from base import Worker

class Vice(Worker):
    def on_query(self, query):
        query["requestId"] = str(int(float(query["requestId"])))
        super().on_query(query)

Vice().run()
