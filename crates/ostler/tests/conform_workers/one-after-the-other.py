"""Ends a slow call before it begins another, though it announces two at a time."""
from base import Worker

class Vice(Worker):
    announced = {"credit": True}

    def on_query(self, query):
        for id in list(self.running):
            self.finish("complete", id, result=None)
        super().on_query(query)

Vice().run()
