"""Knows the graceful kind of shutdown only."""
from base import Worker

class Vice(Worker):
    def on_shutdown(self, message):
        super().on_shutdown({"graceful": True})

Vice().run()
