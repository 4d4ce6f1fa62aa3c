"""Two of its functions have one name."""
from base import Worker

class Vice(Worker):
    functions = Worker.functions + [{"name": "echo"}]

Vice().run()
