"""Presents a token that it was not given."""
from base import Worker

class Vice(Worker):
    def ready(self):
        return {**super().ready(), "token": "open sesame"}

Vice().run()
