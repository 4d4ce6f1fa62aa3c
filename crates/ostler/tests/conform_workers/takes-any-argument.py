"""Announces a schema and does not keep to it."""
from base import Worker

class Vice(Worker):
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    functions = [{"name": "echo", "parameters": schema}] + Worker.functions[1:]

Vice().run()
