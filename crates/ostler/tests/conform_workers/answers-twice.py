"""Answers its second request twice."""
from base import GENERATION, Worker

class Vice(Worker):
    def finish(self, type, id, **keys):
        if (GENERATION, id) == (1, "2"):
            self.send(type, requestId=id, **keys)
        super().finish(type, id, **keys)

Vice().run()
