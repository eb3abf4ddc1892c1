# A plugin that tells what pytest did, as lines of JSON in a file that nothing printed by a test
# reaches. It is brought in through the environment, so that the project's own command runs as it is.
import faulthandler
import importlib.util
import json
import os
import sys
import threading
import time


def taken(name):
    # Processes that tests start are not ours to watch.
    return os.environ.pop(name, "")


report, folder = taken("LULA_REPORT"), taken("LULA_FOLDER")
root = os.path.realpath(taken("LULA_ROOT") or os.getcwd())
names = [name for name in taken("LULA_NAMES").split(",") if name]
limit = float(taken("LULA_TEST_SECONDS") or 0)
covers = bool(taken("LULA_COVER"))
before = taken("LULA_PYTHONPATH")
here = os.getcwd()
others = [name for name in os.environ.get("PYTEST_PLUGINS", "").split(",") if name and name != __name__]
for variable, value in (("PYTHONPATH", before), ("PYTEST_PLUGINS", ",".join(others)), ("NODE_OPTIONS", taken("LULA_NODE_OPTIONS"))):
    os.environ.pop(variable, None)
    if value:
        os.environ[variable] = value
sys.path[:] = [entry for entry in sys.path if entry != folder]
paths = list(sys.path)
process = os.getpid()
cover = Cover() if covers else None


def say(kind, **values):
    if not report or os.getpid() != process:
        return
    values["is"] = kind
    values["runner"] = "pytest"
    data = (json.dumps(values) + "\n").encode("utf-8", "replace")
    descriptor = os.open(report, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data):]
    finally:
        os.close(descriptor)


def shortened(text):
    return text if len(text) <= 6000 else text[:2000] + "\n...\n" + text[-4000:]


def ranges(lines):
    out = []
    for line in lines:
        if out and out[-1][1] == line - 1:
            out[-1][1] = line
        else:
            out.append([line, line])
    return ",".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in out)


class Watcher:
    def __init__(self, config):
        self.top = str(getattr(config, "rootdir", here))
        self.spread = False
        self.plan, self.last, self.timer = {}, None, None
        self.hung = None

    def name(self, nodeid):
        # As pytest takes it on its command line here: its own names start where its configuration lies.
        path, colons, rest = nodeid.partition("::")
        if self.top != here and path:
            path = os.path.relpath(os.path.join(self.top, path), here).replace(os.sep, "/")
        return path + colons + rest

    def pytest_sessionstart(self, session):
        config = session.config
        self.spread = bool(getattr(config.option, "numprocesses", None)) or config.pluginmanager.hasplugin("dsession")
        import pytest
        parameters = getattr(config, "invocation_params", None)
        say("begin", version=pytest.__version__, python="%d.%d.%d" % sys.version_info[:3], executable=sys.executable,
            cwd=here, args=[str(arg) for arg in getattr(parameters, "args", ())], path=paths, spread=self.spread,
            has=[name for name in ("xdist", "pytest_cov", "randomly") if config.pluginmanager.hasplugin(name)])

    def pytest_collectreport(self, report):
        if report.failed:
            say("test", id=self.name(report.nodeid), outcome="broken", message=shortened(str(report.longrepr)))

    def pytest_collection_modifyitems(self, session, config, items):
        try:
            with open(os.path.join(folder, "skip")) as file:
                known = set(json.load(file))
        except (OSError, ValueError):
            known = set()
        if known:
            gone = [item for item in items if self.name(item.nodeid) in known]
            items[:] = [item for item in items if self.name(item.nodeid) not in known]
            config.hook.pytest_deselected(items=gone)
        try:
            self.plan = bare_calls(items, self.name)
        except Exception:
            self.plan = {}

    def pytest_runtest_logstart(self, nodeid, location):
        name = self.name(nodeid)
        say("start", id=name)
        if self.spread:
            return
        if cover:
            if limit:
                self.timer = threading.Timer(limit, self.expired, [name])
                self.timer.daemon = True
                self.timer.start()
            cover.start()
        elif limit:
            if self.hung is None:
                self.hung = open(report + ".hung", "w")
            faulthandler.dump_traceback_later(limit, exit=True, file=self.hung)

    def expired(self, name):
        say("test", id=name, outcome="broken", message="the test did not end in %s seconds" % limit)
        say("lines", id=name, lines={path: ranges(lines) for path, lines in cover.take().items()})
        self.finish()
        say("end", exit=1)
        os._exit(1)

    def pytest_runtest_logreport(self, report):
        outcome, message = None, ""
        if report.failed:
            outcome = "failed" if report.when == "call" else "broken"
            message = shortened(str(report.longrepr))
        elif report.skipped:
            outcome = "skipped"
        elif report.when == "call" and hasattr(report, "wasxfail"):
            # A test that is expected to fail shows nothing, whether it does or not.
            outcome = "skipped"
        elif report.when == "call":
            outcome = "passed"
        if outcome:
            say("test", id=self.name(report.nodeid), outcome=outcome, message=message, ms=int(report.duration * 1000))

    def pytest_runtest_logfinish(self, nodeid, location):
        say("done", id=self.name(nodeid))
        if self.spread:
            return
        if self.timer:
            self.timer.cancel()
        if cover:
            cover.stop()
            say("lines", id=self.name(nodeid), lines={path: ranges(lines) for path, lines in cover.take().items()})
        elif limit:
            faulthandler.cancel_dump_traceback_later()

    def finish(self):
        found = {}
        for name in names:
            try:
                module = sys.modules.get(name) or importlib.util.find_spec(name)
                origin = getattr(module, "__file__", None) or getattr(module, "origin", None)
                places = getattr(module, "__path__", None) or getattr(module, "submodule_search_locations", None)
                origin = origin if origin and origin != "namespace" else next(iter(places or ()), None)
                if origin:
                    found[name] = origin
            except Exception:
                pass
        say("origins", origins=found)
        say("plan", plan=self.plan)
        if cover:
            say("kinds", kinds=cover.types(), preload=installed())

    def pytest_sessionfinish(self, session, exitstatus):
        self.finish()
        say("end", exit=int(exitstatus))


def pytest_configure(config):
    # Workers of xdist tell the process that started them, which tells us.
    if report and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Watcher(config), __name__ + "_watcher")
