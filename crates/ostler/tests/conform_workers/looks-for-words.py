"""Finds its messages by the words in a line."""
import os
from base import Worker

class Vice(Worker):
    def on_line(self, line):
        if b'"graceful":false' in line:
            os._exit(0)
        super().on_line(line)

Vice().run()
