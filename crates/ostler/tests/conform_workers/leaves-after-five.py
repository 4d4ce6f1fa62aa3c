"""Has had enough after five requests."""
import os
from base import GENERATION, Worker

class Vice(Worker):
    def on_query(self, query):
        if (GENERATION, query["requestId"]) == (1, "6"):
            os._exit(3)
        super().on_query(query)

Vice().run()
