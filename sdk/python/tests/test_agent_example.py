"""The example that people start from: examples/workers/agent.py."""

import json
import os
import unittest

from harness import PACKAGE, WorkerTest, wire
from session_server import SessionServer, error_of, value_of

FILE = os.path.join(os.path.dirname(os.path.dirname(PACKAGE)), "examples", "workers", "agent.py")


class Agent(WorkerTest):
    def setUp(self):
        self.server = self.started()

    def started(self):
        with open(FILE, encoding="utf-8") as file:
            source = file.read()
        w = self.worker(source, environ={"AGENT_FOLDER": os.path.join(PACKAGE, "tests")})
        return SessionServer(w)

    def turn(self, text, session="ann"):
        """(the chunks, the result)"""
        rid = self.server.query("turn", text, session=session)
        chunks = []
        while True:
            frame = self.server.next()
            if frame.kind == wire.CALL:
                self.server.answer(frame)
            elif frame.kind == wire.MESSAGE:
                chunks.append(json.loads(frame.body))
            else:
                self.assertEqual((frame.kind, frame.id), (wire.COMPLETE, rid), frame.meta)
                return chunks, value_of(frame)

    def results(self, text, session="ann"):
        chunks, _ = self.turn(text, session)
        return [chunk["content"] for chunk in chunks if chunk["type"] == "tool_result"]

    def test_a_turn_streams_text_tool_uses_and_their_results(self):
        chunks, result = self.turn("hello; what is (6 + 1) * 6?")
        self.assertEqual(chunks, [
            {"type": "text", "text": "I heard: hello"},
            {"type": "tool_use", "id": "tool_2", "name": "calculate", "input": {"expression": "(6 + 1) * 6"}},
            {"type": "tool_result", "tool_use_id": "tool_2", "content": 42, "is_error": False},
        ])
        self.assertEqual(result, {"messages": 2, "tools": ["calculate"]})

    def test_notes_are_programs_of_the_session(self):
        self.assertEqual(self.results("remember milk: two litres; recall milk; recall"),
                         ["noted under milk", "two litres", ["milk"]])
        self.assertEqual(list(self.server.store("ann").programs), ["note:milk"])
        self.assertEqual(self.results("recall", session="ben"), [[]])

    def test_a_folder_is_listed_and_nothing_outside_of_it(self):
        (inside,), (outside,) = self.results("list"), self.results("list ..")
        self.assertIn("test_agent_example.py", inside)
        self.assertIn("PermissionError", outside)

    def test_a_tool_that_fails_does_not_end_the_turn(self):
        chunks, _ = self.turn("calculate 1/0; recall nothing; hello")
        errors = [chunk["content"] for chunk in chunks if chunk.get("is_error")]
        self.assertEqual(errors, ["ZeroDivisionError: division by zero"])
        self.assertEqual(chunks[-1]["text"], "I heard: hello")

    def test_a_cancel_ends_the_turn_and_leaves_the_conversation(self):
        rid = self.server.query("turn", "hello; think for 600 seconds", session="ann")
        chunks = []
        while len(chunks) < 2:
            frame = self.server.next()
            if frame.kind == wire.CALL:
                self.server.answer(frame)
            else:
                chunks.append(json.loads(frame.body))
        self.server.worker.cancel(rid)
        self.assertEqual(self.server.answers(rid)[rid].kind, wire.CANCELLED)
        asked, answer = self.server.value("history", session="ann")
        self.assertEqual(asked["content"], "hello; think for 600 seconds")
        self.assertEqual((answer["content"][:2], answer["finished"]), (chunks, False))
        self.assertEqual(self.turn("and now")[1]["messages"], 4)

    def test_conversations_are_apart_and_can_be_reset(self):
        self.turn("hello")
        self.assertEqual(self.server.value("history", session="ben"), [])
        self.server.value("reset", session="ann")
        self.assertEqual(self.server.value("history", session="ann"), [])
        self.assertEqual(self.server.store("ann").metadata, {"title": "hello"})

    def test_a_conversation_follows_its_session_into_another_process(self):
        self.turn("hello")
        told = self.server.value("history", session="ann")
        self.server.moved("ann")
        other = self.started()
        other.stores = self.server.stores
        self.assertEqual(other.value("history", session="ann"), told)

    def test_without_a_session_it_says_what_is_missing(self):
        self.assertIn("Ostler-Session", error_of(self.server.call("turn", "hello"))["message"])


if __name__ == "__main__":
    unittest.main()
