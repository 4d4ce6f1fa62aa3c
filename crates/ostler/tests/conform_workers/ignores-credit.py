"""Announces credit and pours."""
from base import Worker

class Vice(Worker):
    def pour(self, query):
        query["credit"] = {"chunks": 1000, "bytes": 1 << 20}
        super().pour(query)

Vice().run()
