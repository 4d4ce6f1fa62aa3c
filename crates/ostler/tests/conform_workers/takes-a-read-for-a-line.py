"""Expects whole lines: a short beginning of one is too much for it."""
import json
from base import Worker

class Vice(Worker):
    def read(self, stream):
        open = super().read(stream)
        if 0 < len(self.buffers[stream]) < 64:
            json.loads(self.buffers[stream])
        return open

Vice().run()
