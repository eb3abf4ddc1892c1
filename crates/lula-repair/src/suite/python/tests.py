# Runs a Python project's tests for the repairer: once with results, once with the lines that each
# test executed, or warm, forking a child for every candidate patch. The request is one JSON object
# on standard input; every answer is one line that starts with the request's marker.
#
# This part runs tests and records what they do.
import sys

# The project must not be able to stand in for the modules imported here.
sys.path[:] = [entry for entry in sys.path if entry]
sys.dont_write_bytecode = True

import gc
import importlib
import json
import os
import select
import shutil
import signal
import stat
import tempfile
import time
import traceback
import unittest

request = json.load(sys.stdin)
root = os.path.realpath(request.get("root") or os.getcwd())
here = os.path.realpath(os.getcwd())
answers = os.dup(1)
rank = {"passed": 0, "skipped": 1, "failed": 2, "broken": 3}
limit = request["test_seconds"]
clock = time.monotonic
# Tests may patch the process; the harness keeps its own.
set_timer, fork, kill_group = signal.setitimer, os.fork, os.killpg
try:
    import ctypes
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
except (ImportError, OSError):
    libc = None


def answer(value):
    data = ("\n" + request["marker"] + json.dumps(value) + "\n").encode()
    while data:
        data = data[os.write(answers, data):]


class OutOfTime(BaseException):
    pass


def out_of_time(*_):
    raise OutOfTime("the test did not end in %s seconds" % limit)


def alarm(seconds):
    # Tests use the same signal; where only results are wanted, the parent watches instead.
    if request["mode"] == "run":
        return
    # Again after a while: what catches everything catches the first one too.
    set_timer(signal.ITIMER_REAL, seconds, max(seconds, 1.0) if seconds else 0)
    # A loop shows in the time that it burns, which a busy machine does not stretch.
    if request.get("burn_seconds"):
        set_timer(signal.ITIMER_PROF, request["burn_seconds"] if seconds else 0)


def importable(path):
    # The module name and import root of a file, as pytest's default import mode has it.
    folder, name = os.path.split(os.path.join(here, path))
    parts = [name[:-3]]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return folder, ".".join(parts)


def prepare():
    if request.get("path"):
        # Where the project's own command looks for modules.
        sys.path[:] = request["path"]
    else:
        for entry in (os.path.join(here, "src"), os.path.join(here, "lib"), here):
            if os.path.isdir(entry) and entry not in sys.path:
                sys.path.insert(0, entry)
    sys.argv[:] = ["test"]


class Record:
    # Outcome by test id; a test with sub-tests ends as its worst one did.
    def __init__(self, cover, tell=None, known=()):
        self.tests = {}
        self.cover = cover
        # Who hears of each test as it starts and ends.
        self.tell = tell or (lambda *_: None)
        # Tests that were run before and are not run again.
        self.known = set(known)
        self.started = 0.0
        self.running = None
        self.slowest = 0.0
        self.stop = None
        self.hung = False
        # Tests of pytest that need nothing but a call: their file, function and which of its cases.
        self.plan = {}

    def note(self, name, outcome, message=""):
        self.hung = self.hung or "did not end in" in message
        old = self.tests.get(name)
        if old is None:
            old = self.tests[name] = {"id": name, "outcome": outcome, "message": message[-6000:], "ms": 0, "lines": {}}
        elif rank[outcome] > rank[old["outcome"]]:
            old.update(outcome=outcome, message=message[-6000:])
        return old

    def start(self, name):
        self.started = clock()
        self.running = name
        self.tell("start", name)
        alarm(self.patience())
        if self.cover:
            self.cover.start()

    def end(self, name):
        if self.cover:
            self.cover.stop()
        alarm(0)
        took = clock() - self.started
        self.running = None
        test = self.tests.get(name) or self.note(name, "passed")
        test["ms"] += int(took * 1000)
        if test["outcome"] == "passed":
            self.slowest = max(self.slowest, took)
        if self.cover:
            test["lines"] = self.cover.take()
        self.tell("end", test)
        return test

    def patience(self):
        # Once a test was seen to hang, others that may hang too are not waited for as long.
        return min(limit, max(limit / 4, self.slowest * 10)) if self.hung else limit


class Result(unittest.TestResult):
    def __init__(self, record):
        super().__init__()
        self.record = record

    def startTest(self, test):
        super().startTest(test)
        self.record.start(test.id())

    def stopTest(self, test):
        super().stopTest(test)
        done = self.record.end(test.id())
        if self.record.stop and rank[done["outcome"]] > 1:
            self.stop()

    def addSuccess(self, test):
        self.record.note(test.id(), "passed")

    def addFailure(self, test, err):
        self.record.note(test.id(), "failed", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        name = getattr(test, "id", lambda: str(test))()
        self.record.note(name, "broken", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        self.record.note(test.id(), "skipped", reason)

    def addExpectedFailure(self, test, err):
        self.record.note(test.id(), "passed")

    def addUnexpectedSuccess(self, test):
        self.record.note(test.id(), "failed", "unexpected success")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            broken = not issubclass(err[0], test.failureException)
            message = self._exc_info_to_string(err, test)
            self.record.note(test.id(), "broken" if broken else "failed", message)


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def plain_tests(module):
    # Bare functions named test_*: pytest's simplest style needs nothing but a call.
    for name, value in list(vars(module).items()):
        code = getattr(value, "__code__", None)
        if name.startswith("test") and code is not None and value.__module__ == module.__name__:
            if code.co_argcount == 0:
                case = unittest.FunctionTestCase(value)
                case.id = lambda module=module, name=name: module.__name__ + "." + name
                yield case


def load(paths, record):
    prepare()
    found = []
    for path in paths:
        folder, name = importable(path)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        alarm(limit)
        try:
            module = importlib.import_module(name)
            found += flatten(unittest.defaultTestLoader.loadTestsFromModule(module))
            if request["framework"] == "plain":
                found += plain_tests(module)
        except (Exception, SystemExit, OutOfTime) as error:
            if isinstance(error, unittest.SkipTest):
                continue
            record.note(name, "broken", traceback.format_exc())
        finally:
            alarm(0)
    return found


def run_unittest(record, files, groups):
    for index, group in enumerate(groups):
        wanted = None if group["tests"] is None else {name: i for i, name in enumerate(group["tests"])}
        paths = group.get("files") or files
        tests = [test for test in load(paths, record) if test.id() not in record.known]
        if wanted is not None:
            tests = sorted((t for t in tests if t.id() in wanted), key=lambda t: wanted[t.id()])
            for name in wanted.keys() - {t.id() for t in tests}:
                record.note(name, "broken", "the test is gone")
        result = Result(record)
        record.stop = group["stop"] == "first"
        unittest.TestSuite(tests).run(result)
        if group["stop"] != "never" and any(rank[t["outcome"]] > 1 for t in record.tests.values()):
            return


class Plugin:
    def __init__(self, record):
        self.record = record
        self.top = here

    def name(self, nodeid):
        # As pytest takes it on its command line here: its own names start where its configuration lies.
        path, colons, rest = nodeid.partition("::")
        if self.top != here and path:
            path = os.path.relpath(os.path.join(self.top, path), here)
        return path + colons + rest

    def pytest_configure(self, config):
        self.top = str(getattr(config, "rootdir", here))

    def pytest_collectstart(self, collector):
        alarm(limit)

    def pytest_collectreport(self, report):
        alarm(0)
        if report.failed:
            self.record.note(self.name(report.nodeid), "broken", str(report.longrepr))

    def pytest_runtest_logstart(self, nodeid, location):
        self.record.start(self.name(nodeid))

    def pytest_runtest_logreport(self, report):
        name = self.name(report.nodeid)
        if report.failed:
            kind = "failed" if report.when == "call" else "broken"
            self.record.note(name, kind, str(report.longrepr))
        elif report.skipped:
            self.record.note(name, "skipped")
        elif report.when == "call" and hasattr(report, "wasxfail"):
            # A test that is expected to fail shows nothing, whether it does or not.
            self.record.note(name, "skipped")
        elif report.when == "call":
            self.record.note(name, "passed")

    def pytest_runtest_logfinish(self, nodeid, location):
        self.record.end(self.name(nodeid))


def pytest_arguments(group):
    stop = ["-x"] if group["stop"] == "first" else []
    # What a candidate printed and why it failed is never read.
    return request["options"] + ["-s", "--assert=plain", "--tb=no", "-q"] + stop + list(group["tests"])


def run_pytest(record, groups, ready=None):
    import pytest

    prepare()
    for index, group in enumerate(groups):
        if not group["tests"]:
            continue
        if ready:
            code = ready[index](record, group)
        else:
            code = pytest.main(pytest_arguments(group), plugins=[Plugin(record)])
        if code not in (0, 1, 5) and not any(rank[t["outcome"]] > 1 for t in record.tests.values()):
            record.note("collection", "broken", "pytest ended with code %s" % code)
        if group["stop"] != "never" and any(rank[t["outcome"]] > 1 for t in record.tests.values()):
            return


def run_bare(record, groups, plan):
    # Tests that need nothing but a call, without pytest around them: what that shows is held
    # against what pytest showed before it is relied upon.
    prepare()
    modules, cases = {}, {}

    def call(name):
        path, function, case = plan[name]
        if path not in modules:
            folder, module = importable(path)
            if folder not in sys.path:
                sys.path.insert(0, folder)
            modules[path] = importlib.import_module(module)
        test = getattr(modules[path], function)
        if case is None:
            return test()
        mark = next(mark for mark in test.pytestmark if mark.name == "parametrize")
        names, values = mark.args
        if isinstance(names, str):
            names = [part.strip() for part in names.split(",") if part.strip()]
        known = cases.setdefault((path, function), values if isinstance(values, list) else list(values))
        value = known[case]
        if type(value).__name__ == "ParameterSet":
            value = value.values
        elif len(names) == 1:
            value = (value,)
        return test(**dict(zip(names, value)))

    for group in groups:
        for name in group["tests"]:
            record.start(name)
            try:
                if call(name) is not None:
                    record.note(name, "failed", "the test returned something")
            except BaseException as error:
                skipped = type(error).__name__ == "Skipped"
                record.note(name, "skipped" if skipped else "failed")
            done = record.end(name)
            if group["stop"] == "first" and rank[done["outcome"]] > 1:
                return
        if group["stop"] != "never" and any(rank[t["outcome"]] > 1 for t in record.tests.values()):
            return


def ready_pytest(groups):
    # pytest up to where it looks for tests, once for all candidates; none where it has imported
    # something of the project by then, of which candidates need their own.
    import pytest
    from _pytest.config import _prepareconfig
    from _pytest.main import Session

    prepare()

    def make(group):
        plugin = Plugin(None)
        config = _prepareconfig(pytest_arguments(group), [plugin])
        session = Session.from_config(config)
        config._do_configure()
        config.hook.pytest_sessionstart(session=session)

        def start(record, group):
            plugin.record = record
            config.args[:] = group["tests"]
            try:
                config.hook.pytest_collection(session=session)
                config.hook.pytest_runtestloop(session=session)
            except (Session.Interrupted, Session.Failed):
                return 1
            except (Exception, pytest.exit.Exception):
                return 3
            return 1 if session.testsfailed else 0

        return start

    made = [make(dict(group, tests=group["tests"][:1])) if group["tests"] else None for group in groups]
    return None if holds_own() else made
