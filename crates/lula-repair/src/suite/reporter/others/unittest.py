# Loaded by every Python process that a test command starts. In one that runs tests with unittest's text
# runner, as Django's does, it tells what each test did, as lines of JSON in a file that nothing printed by a
# test reaches, and takes itself out of the environment, so that what the tests start is not watched.
import os
import sys

report = os.environ.get("LULA_REPORT", "")
folder = os.environ.get("LULA_FOLDER", "")
process = os.getpid()


def leave():
    for name in [name for name in os.environ if name.startswith("LULA_")]:
        value = os.environ.pop(name)
        if name in ("LULA_PYTHONPATH", "LULA_NODE_OPTIONS"):
            os.environ.pop(name[5:], None)
            if value:
                os.environ[name[5:]] = value
    os.environ.pop("PYTEST_PLUGINS", None)


def say(kind, **values):
    import json

    if os.getpid() != process:
        return
    values["is"] = kind
    data = (json.dumps(values) + "\n").encode("utf-8", "replace")
    descriptor = os.open(report, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data):]
    finally:
        os.close(descriptor)


def shortened(text):
    return text if len(text) <= 6000 else text[:2000] + "\n...\n" + text[-4000:]


def named(test):
    name = getattr(test, "id", None)
    return name() if callable(name) else str(test)


class Telling:
    """Stands on one result, whatever its class makes of what it is told."""

    RANK = ("passed", "skipped", "failed", "broken")

    def __init__(self, result):
        self.result = result
        self.running = {}
        for name in ("startTest", "stopTest", "addSuccess", "addFailure", "addError", "addSkip", "addExpectedFailure", "addUnexpectedSuccess", "addSubTest"):
            original = getattr(result, name, None)
            if original:
                setattr(result, name, self.both(original, getattr(self, name)))

    def both(self, original, ours):
        def told(*args, **kwargs):
            try:
                ours(*args, **kwargs)
            finally:
                return original(*args, **kwargs)

        return told

    def text(self, err, test):
        try:
            return shortened(self.result._exc_info_to_string(err, test))
        except Exception:
            return repr(err[1] if isinstance(err, tuple) else err)

    def note(self, test, outcome, message=""):
        name = named(test)
        if name not in self.running:
            return say("test", id=name, outcome=outcome, message=message)
        known = self.running[name]
        if known is None or self.RANK.index(outcome) > self.RANK.index(known[0]):
            self.running[name] = (outcome, message)

    def startTest(self, test):
        self.running[named(test)] = None
        say("start", id=named(test))

    def stopTest(self, test):
        # Subtests that are all fine leave nothing behind.
        outcome, message = self.running.pop(named(test), None) or ("passed", "")
        say("test", id=named(test), outcome=outcome, message=message)
        say("done", id=named(test))

    def addSuccess(self, test, *rest):
        self.note(test, "passed")

    def addFailure(self, test, err):
        self.note(test, "failed", self.text(err, test))

    def addError(self, test, err):
        # What stands for a class or a file that could not be set up or read is no test.
        whole = type(test).__name__ in ("_ErrorHolder", "_FailedTest")
        self.note(test, "broken" if whole else "failed", self.text(err, test))

    def addSkip(self, test, reason):
        self.note(test, "skipped")

    def addExpectedFailure(self, test, err):
        self.note(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.note(test, "failed", "it was expected to fail and passed")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, "failed", named(subtest) + "\n" + self.text(err, test))


def watch(module):
    original = module.TextTestRunner.run
    begun = []

    def run(self, test, *rest):
        # A runner that a test starts is a part of that test.
        if begun or os.getpid() != process:
            return original(self, test, *rest)
        begun.append(self)
        leave()
        make = self._makeResult

        def telling():
            result = make()
            Telling(result)
            return result

        self._makeResult = telling
        version = ".".join(map(str, sys.version_info[:3]))
        say("begin", runner="unittest", version=version, python=version, executable=sys.executable, cwd=os.getcwd())
        try:
            result = original(self, test, *rest)
        finally:
            begun.clear()
        say("end")
        return result

    module.TextTestRunner.run = run


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "unittest.runner":
            return None
        import importlib.machinery

        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            load = spec.loader.exec_module

            def both(module):
                load(module)
                watch(module)

            spec.loader.exec_module = both
        return spec


def others():
    # The machine may have a module of this name of its own.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        if own is not None:
            sys.modules["sitecustomize"] = own


if report and folder:
    sys.meta_path.insert(0, Finder())
others()
