"""Says that there was one chunk more."""
from base import Worker

class Vice(Worker):
    def finish(self, type, id, **keys):
        if keys.get("chunks"):
            keys["chunks"] += 1
        super().finish(type, id, **keys)

Vice().run()
