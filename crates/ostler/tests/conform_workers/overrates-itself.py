"""Announces two calls at a time and has room for one."""
import os
from base import GENERATION, Worker

class Vice(Worker):
    def on_query(self, query):
        if GENERATION != 2:
            return super().on_query(query)
        if self.running:
            os._exit(3)
        self.running[query["requestId"]] = query

Vice().run()
