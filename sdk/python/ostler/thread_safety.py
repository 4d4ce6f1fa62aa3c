"""What the thread profile makes of functions that are not declared thread-safe.

    @ostler.function(thread_safe=True)    may run beside itself and others
    @ostler.function(thread_safe=False)   must not run beside itself
    @ostler.function                      nobody has said

``warn`` names the undeclared ones at the start, and reports once per function
that two requests were inside one that said it must not happen. ``refuse`` does
not start with undeclared ones, and refuses the second request. ``off`` looks at
nothing. Knows no streams and no threads but the lock around its counts.
"""

import sys
import threading

CHECKS = ("off", "warn", "refuse")


class ThreadSafety:
    def __init__(self, checks):
        self.checks = checks
        self.lock = threading.Lock()
        self.inside = {}
        self.reported = set()

    def objection(self, functions):
        """Why the worker must not start with ``functions``, or None."""
        undeclared = [f.name for f in functions if f.thread_safe is None]
        if not undeclared or self.checks == "off":
            return None
        names = ", ".join(undeclared)
        advice = "declare each with @ostler.function(thread_safe=True) or thread_safe=False"
        if self.checks == "refuse":
            return f"not declared thread-safe: {names}; {advice}, or set thread_safety_checks = \"warn\""
        print(f"ostler: may run in several threads at once, but not declared thread-safe: {names}; {advice}",
              file=sys.stderr, flush=True)
        return None

    def enter(self, function):
        """The refusal of a request that wants in, or None. Then ``leave`` must follow."""
        if function.thread_safe is not False or self.checks == "off":
            return None
        with self.lock:
            others = self.inside.get(function.name, 0)
            if others and self.checks == "refuse":
                return refusal(function)
            self.inside[function.name] = others + 1
            report = others and function.name not in self.reported
            if report:
                self.reported.add(function.name)
        if report:
            print(f"ostler: two requests at once are inside {function.name}, which is declared "
                  "thread_safe=False; said once", file=sys.stderr, flush=True)
        return None

    def leave(self, function):
        if function.thread_safe is False and self.checks != "off":
            with self.lock:
                self.inside[function.name] -= 1


def refusal(function):
    return {
        "code": "thread_unsafe",
        "message": f"{function.name} is declared thread_safe=False and another request is inside it",
        "retryable": True,
        "started": False,
    }
