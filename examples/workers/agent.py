"""An agent without a model: a conversation in memory, tools, and a stream of what happens.

Serve it in a pool with key = "session" (see ../agent), so that each conversation has a process of
its own. A small planner stands where a model would: it finds wishes in the text and answers each
by a tool, or by words.

    calculate 6 * 7; remember milk: two litres; recall milk; list; think for 10 seconds
"""

import ast
import operator
import os
import re
import time

import ostler

FOLDER = os.environ.get("AGENT_FOLDER", os.path.dirname(os.path.abspath(__file__)))
MESSAGES_MAX = 200  # of a conversation; the oldest are forgotten
ENTRIES_MAX = 100  # of a listing

conversations = {}  # session id -> messages, as long as this process lives


# What callers use.


@ostler.function
def turn(text: str):
    """Answer a message. Streams text, tool uses and their results; returns a summary."""
    session = ostler.session()
    if "title" not in session:
        session["title"] = text[:60]  # kept by the server, readable without this process
    # Each part is noted before it is sent: what was said before a cancel remains said.
    answer = {"role": "agent", "content": [], "finished": False}
    messages = conversations.setdefault(session.id, [])
    messages += [{"role": "user", "content": text}, answer]
    del messages[:-MESSAGES_MAX]
    for part in respond(text):
        answer["content"].append(part)
        yield part
    answer["finished"] = True
    used = [part["name"] for part in answer["content"] if part["type"] == "tool_use"]
    return {"messages": len(messages), "tools": used}


@ostler.function
def history() -> list:
    """The conversation so far."""
    return conversations.get(ostler.session().id, [])


@ostler.function
def reset():
    """Forget the conversation; notes stay."""
    conversations.pop(ostler.session().id, None)


# How a conversation follows its session into another process.


@ostler.save_session
def save(session_id):
    return conversations.pop(session_id, None)


@ostler.restore_session
def restore(session_id, messages):
    conversations[session_id] = messages


# The planner.


def respond(text):
    """Yields the parts of an answer, one wish after another."""
    for number, wish in enumerate(wishes(text), 1):
        thinking = re.fullmatch(r"think for (\d{1,4}) seconds?", wish, re.IGNORECASE)
        if thinking:
            yield from think(int(thinking[1]))
            continue
        name, arguments = choose(wish)
        if name is None:
            yield say(f"I heard: {wish}")
        else:
            yield from use(f"tool_{number}", name, arguments)


def wishes(text):
    return [wish.strip() for wish in re.split(r"[;\n]", text) if wish.strip()]


def choose(wish):
    """(the first tool whose pattern the wish fits, its arguments)"""
    for name, (pattern, _) in TOOLS.items():
        found = re.fullmatch(pattern, wish, re.IGNORECASE)
        if found:
            return name, {key: value for key, value in found.groupdict().items() if value is not None}
    return None, {}


def use(id, name, arguments):
    yield {"type": "tool_use", "id": id, "name": name, "input": arguments}
    try:
        result, failed = TOOLS[name][1](**arguments), False
    except Exception as error:  # a cancel is no Exception: it ends the turn, not just the tool
        result, failed = f"{type(error).__name__}: {error}", True
    yield {"type": "tool_result", "tool_use_id": id, "content": result, "is_error": failed}


def think(seconds):
    yield say("Let me think.")
    for _ in range(seconds):
        time.sleep(1)  # where a cancel finds it: ostler.Cancelled is raised right here
        yield say(" ...")
    yield say(" Done.")


def say(text):
    return {"type": "text", "text": text}


# The tools. Each takes texts and returns JSON.

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
}


def calculate(expression):
    return evaluate(ast.parse(expression.strip(), mode="eval").body)


def evaluate(node):
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](evaluate(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](evaluate(node.left), evaluate(node.right))
    raise ValueError("only numbers, parentheses and + - * / // % are understood")


def remember(name, note):
    """Notes are programs of the session: the server keeps them, whatever becomes of this process."""
    ostler.session().programs[f"note:{name}"] = note
    return f"noted under {name}"


def recall(name=None):
    programs = ostler.session().programs
    if name is not None:
        return programs.get(f"note:{name}", f"nothing is noted under {name}")
    return [program[len("note:"):] for program in programs if program.startswith("note:")]


def list_folder(folder="."):
    root = os.path.realpath(FOLDER)
    path = os.path.realpath(os.path.join(root, folder))
    if os.path.commonpath([root, path]) != root:
        raise PermissionError(f"{folder} is outside of the folder that I may see")
    entries = []
    with os.scandir(path) as found:
        for entry in found:
            if ostler.request().cancelled:  # for profiles where nothing is raised in a handler
                raise ostler.Cancelled
            entries.append(entry.name + ("/" if entry.is_dir() else ""))
            if len(entries) == ENTRIES_MAX:
                break
    return sorted(entries)


TOOLS = {
    "calculate": (r"(?:calculate|what is) (?P<expression>[-+*/%(). \d]{1,200})\??", calculate),
    "remember": (r"remember (?P<name>[\w.-]{1,64}): (?P<note>.+)", remember),
    "recall": (r"recall(?: (?P<name>[\w.-]{1,64}))?", recall),
    "list_folder": (r"list(?: (?P<folder>[^\0]+))?", list_folder),
}
