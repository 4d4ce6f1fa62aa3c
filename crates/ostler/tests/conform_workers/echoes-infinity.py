"""Writes a number that is not JSON."""
from base import Worker

class Vice(Worker):
    def result(self, query):
        return query.get("payload")

Vice().run()
