# Runs a Python project's tests for the repairer: once with results, once with the lines that each
# test executed, or warm, forking a child for every candidate patch. The request is one JSON object
# on standard input; every answer is one line that starts with the request's marker.
import sys

# The project must not be able to stand in for the modules imported here.
sys.path[:] = [entry for entry in sys.path if entry]
sys.dont_write_bytecode = True

import importlib
import io
import json
import os
import select
import signal
import time
import traceback
import unittest

request = json.load(sys.stdin)
root = os.path.realpath(os.getcwd())
answers = os.dup(1)
rank = {"passed": 0, "skipped": 1, "failed": 2, "broken": 3}
limit = request["test_seconds"]
clock = time.monotonic
# Tests may patch the process; the harness keeps its own.
alarm, fork, kill_group = signal.setitimer, os.fork, os.killpg


def answer(value):
    data = ("\n" + request["marker"] + json.dumps(value) + "\n").encode()
    while data:
        data = data[os.write(answers, data):]


class OutOfTime(BaseException):
    pass


def out_of_time(*_):
    raise OutOfTime("the test did not end in %s seconds" % limit)


def importable(path):
    # The module name and import root of a file, as pytest's default import mode has it.
    folder, name = os.path.split(os.path.join(root, path))
    parts = [name[:-3]]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return folder, ".".join(parts)


def prepare():
    for entry in (os.path.join(root, "src"), os.path.join(root, "lib"), root):
        if os.path.isdir(entry) and entry not in sys.path:
            sys.path.insert(0, entry)
    sys.argv[:] = ["test"]


class Record:
    # Outcome by test id; a test with sub-tests ends as its worst one did.
    def __init__(self, cover):
        self.tests = {}
        self.cover = cover
        self.started = 0.0
        self.stop = None

    def note(self, name, outcome, message=""):
        old = self.tests.get(name)
        if old is None:
            old = self.tests[name] = {"id": name, "outcome": outcome, "message": message[-6000:], "ms": 0, "lines": {}}
        elif rank[outcome] > rank[old["outcome"]]:
            old.update(outcome=outcome, message=message[-6000:])
        return old

    def start(self):
        self.started = clock()
        alarm(signal.ITIMER_REAL, limit)
        if self.cover:
            self.cover.start()

    def end(self, name):
        if self.cover:
            self.cover.stop()
        alarm(signal.ITIMER_REAL, 0)
        test = self.tests.get(name) or self.note(name, "passed")
        test["ms"] += int((clock() - self.started) * 1000)
        if self.cover:
            test["lines"] = self.cover.take()
        return test


class Cover:
    # The lines of the project that run between start and stop.
    def __init__(self):
        self.seen = {}
        self.wanted = {}
        self.monitoring = getattr(sys, "monitoring", None)

    def want(self, filename):
        wanted = self.wanted.get(filename)
        if wanted is None:
            path = os.path.realpath(filename) if not filename.startswith("<") else ""
            inside = path.startswith(root + os.sep)
            path = os.path.relpath(path, root) if inside else ""
            outside = ("site-packages" in path, path.startswith("."), "node_modules" in path)
            wanted = self.wanted[filename] = path if inside and not any(outside) else ""
        return wanted

    def line(self, code, number):
        path = self.want(code.co_filename)
        if path:
            self.seen.setdefault(path, set()).add(number)
        return None

    def trace(self, frame, event, _):
        path = self.want(frame.f_code.co_filename)
        if not path:
            return None
        lines = self.seen.setdefault(path, set())
        lines.add(frame.f_lineno)

        def local(frame, event, _):
            if event == "line":
                lines.add(frame.f_lineno)
            return local

        return local

    def start(self):
        self.seen = {}
        if self.monitoring:
            self.monitoring.use_tool_id(self.monitoring.COVERAGE_ID, "lula")
            event = self.monitoring.events.LINE
            self.monitoring.register_callback(self.monitoring.COVERAGE_ID, event, self.line)
            self.monitoring.set_events(self.monitoring.COVERAGE_ID, event)
        else:
            import threading
            threading.settrace(self.trace)
            sys.settrace(self.trace)

    def stop(self):
        if self.monitoring:
            try:
                self.monitoring.set_events(self.monitoring.COVERAGE_ID, 0)
                self.monitoring.free_tool_id(self.monitoring.COVERAGE_ID)
            except ValueError:
                pass
        else:
            import threading
            threading.settrace(None)
            sys.settrace(None)

    def take(self):
        return {path: sorted(lines) for path, lines in self.seen.items()}


class Result(unittest.TestResult):
    def __init__(self, record):
        super().__init__()
        self.record = record

    def startTest(self, test):
        super().startTest(test)
        self.record.start()

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
        alarm(signal.ITIMER_REAL, limit)
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
            alarm(signal.ITIMER_REAL, 0)
    return found


def run_unittest(record, files, groups):
    for index, group in enumerate(groups):
        wanted = None if group["tests"] is None else {name: i for i, name in enumerate(group["tests"])}
        paths = group.get("files") or files
        tests = load(paths, record)
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
    def __init__(self, record, collect):
        self.record = record
        self.collect = collect

    def pytest_collectreport(self, report):
        if report.failed:
            self.record.note(report.nodeid, "broken", str(report.longrepr))

    def pytest_runtest_protocol(self, item, nextitem):
        self.record.start()

    def pytest_runtest_logreport(self, report):
        if report.failed:
            kind = "failed" if report.when == "call" else "broken"
            self.record.note(report.nodeid, kind, str(report.longrepr))
        elif report.skipped:
            self.record.note(report.nodeid, "passed" if hasattr(report, "wasxfail") else "skipped")
        elif report.when == "call":
            self.record.note(report.nodeid, "passed")

    def pytest_runtest_logfinish(self, nodeid, location):
        self.record.end(nodeid)


def run_pytest(record, files, groups):
    import pytest

    prepare()
    for group in groups:
        wanted = group["tests"]
        targets = list(group.get("files") or files) if wanted is None else list(wanted)
        stop = ["-x"] if group["stop"] == "first" else []
        quiet = ["-q", "--no-header", "-p", "no:cacheprovider", "--tb=short", "-p", "no:randomly"]
        code = pytest.main(quiet + stop + request["options"] + targets, plugins=[Plugin(record, None)])
        if wanted is not None and group["stop"] == "never":
            for name in wanted:
                if name not in record.tests:
                    record.note(name, "broken", "the test did not run")
        if code not in (0, 1, 5) and not any(rank[t["outcome"]] > 1 for t in record.tests.values()):
            record.note("collection", "broken", "pytest ended with code %s" % code)
        if group["stop"] != "never" and any(rank[t["outcome"]] > 1 for t in record.tests.values()):
            return


def silence():
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)


def run(groups, cover=None):
    signal.signal(signal.SIGALRM, out_of_time)
    record = Record(cover)
    runner = run_pytest if request["framework"] == "pytest" else run_unittest
    try:
        runner(record, request["files"], groups)
    except (SystemExit, OutOfTime) as error:
        record.note("run", "broken", "%s: %s" % (type(error).__name__, error))
    return record


def installed():
    # What the tests import that is not the project's own: worth importing once for all forks.
    names = set()
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None) or ""
        if origin and not os.path.realpath(origin).startswith(root + os.sep) and "." not in name:
            names.add(name)
    return sorted(names)


def bytes_of(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def judge(candidate):
    # One candidate, in a child of its own, killed with all it started when its time is up.
    before = {path: bytes_of(path) for path in candidate["files"]}
    receive, send = os.pipe()
    started = clock()
    try:
        for path, text in candidate["files"].items():
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        child = fork()
        if child == 0:
            try:
                os.setsid()
                os.close(receive)
                silence()
                record = run(request["groups"])
                tests = [{"id": t["id"], "outcome": t["outcome"]} for t in record.tests.values()]
                data = json.dumps(tests).encode()
                while data:
                    data = data[os.write(send, data):]
            finally:
                os._exit(0)
        os.close(send)
        send = -1
        data, deadline = b"", started + request["candidate_seconds"]
        while True:
            left = deadline - clock()
            ready = select.select([receive], [], [], max(left, 0))[0]
            if not ready:
                break
            chunk = os.read(receive, 1 << 16)
            if not chunk:
                break
            data += chunk
        try:
            kill_group(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    finally:
        os.close(receive)
        if send >= 0:
            os.close(send)
        for path, old in before.items():
            if old is None:
                os.unlink(path)
            else:
                with open(path, "wb") as file:
                    file.write(old)
    try:
        tests = json.loads(data)
    except ValueError:
        tests = None
    answer({"candidate": candidate["id"], "tests": tests, "ms": int((clock() - started) * 1000)})


def compile_once():
    # Every child imports the same sources but one: compile them here, for all.
    from importlib.machinery import SourceFileLoader

    compiled = {}
    original = SourceFileLoader.source_to_code

    def source_to_code(self, data, path, *rest, **options):
        key = (path, bytes(data))
        if key not in compiled:
            compiled[key] = original(self, data, path, *rest, **options)
        return compiled[key]

    SourceFileLoader.source_to_code = source_to_code


def serve():
    prepare()
    compile_once()
    for name in request["preload"] + (["pytest"] if request["framework"] == "pytest" else []):
        try:
            importlib.import_module(name)
        except BaseException:
            pass
    until = clock() + request["seconds"]
    from importlib.machinery import SourceFileLoader
    for path in request["warm"]:
        # Under the name that the import system will use, or the cache is never hit.
        full = os.path.join(root, path)
        data = bytes_of(full)
        try:
            SourceFileLoader("warm", full).source_to_code(data, full)
        except (SyntaxError, ValueError, TypeError):
            pass
    for candidate in request["candidates"]:
        if clock() > until:
            break
        judge(candidate)


mode = request["mode"]
if mode == "serve":
    serve()
else:
    cover = Cover() if mode == "cover" else None
    shown = os.dup(2)
    silence()
    try:
        record = run(request["groups"], cover)
        answer({"tests": list(record.tests.values()), "preload": installed() if cover else []})
    except BaseException:
        os.write(shown, traceback.format_exc().encode())
        raise
os._exit(0)
