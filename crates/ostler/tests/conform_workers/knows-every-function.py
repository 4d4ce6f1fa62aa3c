"""Completes calls of functions that it does not have."""
from base import Worker

class Vice(Worker):
    def finish(self, type, id, **keys):
        if type == "error":
            type, keys = "complete", {"result": None}
        super().finish(type, id, **keys)

Vice().run()
