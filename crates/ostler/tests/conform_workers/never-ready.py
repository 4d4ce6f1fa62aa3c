"""Waits for the server to begin."""
from base import Worker

class Vice(Worker):
    def open_up(self):
        pass

Vice().run()
