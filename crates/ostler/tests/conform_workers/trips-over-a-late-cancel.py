"""Believes that a cancel is always for a request that it holds."""
from base import Worker

class Vice(Worker):
    def on_cancel(self, message):
        self.running[message["requestId"]]
        super().on_cancel(message)

Vice().run()
