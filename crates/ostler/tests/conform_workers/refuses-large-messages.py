"""Has a limit of its own, below the one that it was told."""
from base import Worker

class Vice(Worker):
    def on_line(self, line):
        self.long = len(line) > 1 << 19
        super().on_line(line)

    def finish(self, type, id, **keys):
        if self.long:
            type, keys = "error", {"error": "too long"}
        super().finish(type, id, **keys)

Vice().run()
