"""Gives a request back and says that it had begun."""
from base import Worker

class Vice(Worker):
    def answer_urgently(self, type, **keys):
        keys.pop("started", None)
        super().answer_urgently(type, **keys)

Vice().run()
