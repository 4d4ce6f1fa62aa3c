"""Goes on when its control stream has ended."""
from base import Worker

class Vice(Worker):
    def on_end(self, stream):
        if stream is self.data:
            super().on_end(stream)

Vice().run()
