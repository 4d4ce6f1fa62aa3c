"""Sends one more chunk after the end of its first stream."""
from base import Worker

class Vice(Worker):
    late = True

    def finish(self, type, id, **keys):
        super().finish(type, id, **keys)
        if self.late and keys.get("chunks"):
            self.late = False
            self.send("message", requestId=id, content="and another thing")

Vice().run()
