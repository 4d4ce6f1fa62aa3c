"""Does not survive a cancel inside a stream."""
import os
from base import Worker

class Vice(Worker):
    def on_query(self, query):
        query["limited"] = "credit" in query
        super().on_query(query)

    def on_cancel(self, message):
        query = self.running.get(message["requestId"], {})
        if query.get("function") == "count" and not query["limited"]:
            os._exit(3)
        super().on_cancel(message)

Vice().run()
