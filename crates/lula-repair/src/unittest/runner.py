# Runs every unittest below the current directory and reports in one line of JSON.
import sys

# The project must not be able to stand in for the modules imported here.
sys.path[:] = [entry for entry in sys.path if entry]

import json
import os
import unittest

marker = sys.argv.pop()
out = os.dup(1)
sys.path.insert(0, os.getcwd())
tests = {}
rank = {"passed": 0, "skipped": 1, "failed": 2, "broken": 3}


def record(test, outcome, message=""):
    # A test with sub-tests ends as its worst one did.
    test = getattr(test, "test_case", test)
    old = tests.get(test.id())
    if old is None or rank[outcome] > rank[old["outcome"]]:
        tests[test.id()] = {"id": test.id(), "outcome": outcome, "message": message[-4000:]}


class Result(unittest.TestResult):
    def addSuccess(self, test):
        record(test, "passed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        record(test, "failed", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        record(test, "broken", self.errors[-1][1])

    def addSkip(self, test, reason):
        record(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        record(test, "passed")

    def addUnexpectedSuccess(self, test):
        record(test, "failed", "unexpected success")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            broken = not issubclass(err[0], test.failureException)
            messages = self.errors if broken else self.failures
            record(subtest, "broken" if broken else "failed", messages[-1][1])


result = Result()
top = os.getcwd()
start = os.path.join(top, "tests") if os.path.isdir("tests") else top
unittest.TestLoader().discover(start, top_level_dir=top).run(result)
text = marker + json.dumps({"tests": list(tests.values())}) + "\n"
os.write(out, b"\n")
data = text.encode()
while data:
    data = data[os.write(out, data):]
sys.exit(0 if not result.errors and not result.failures else 1)
