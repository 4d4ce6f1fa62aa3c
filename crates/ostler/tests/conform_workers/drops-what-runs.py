"""Leaves at once though it was asked to finish."""
from base import GENERATION, Worker

class Vice(Worker):
    def begin(self, query):
        if GENERATION == 5:
            self.held = query
        else:
            super().begin(query)

Vice().run()
