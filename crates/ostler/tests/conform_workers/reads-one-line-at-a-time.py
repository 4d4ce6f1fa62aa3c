"""Is lost when a line follows a health_check at once."""
from base import Worker

class Vice(Worker):
    def on_health_check(self, message):
        if self.batch:
            raise RuntimeError("two lines at a time")
        super().on_health_check(message)

Vice().run()
