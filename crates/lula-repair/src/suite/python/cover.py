# Which lines of the project run, and what its variables hold. Shared by the plugin that watches the
# project's own command and by the harness that judges candidates.
def own(filename):
    # The path of a file of the project, from its root; nothing for what was installed, wherever it lies.
    if not filename or filename.startswith("<"):
        return ""
    path = os.path.realpath(filename)
    prefix = os.path.realpath(sys.prefix)
    if not path.startswith(root + os.sep) or prefix != root and path.startswith(prefix + os.sep):
        return ""
    path = os.path.relpath(path, root)
    parts = path.split(os.sep)
    foreign = any(part in ("site-packages", "dist-packages", "node_modules") for part in parts)
    return "" if foreign or any(part.startswith(".") for part in parts[:-1]) else path


class Cover:
    # The lines of the project that run between start and stop.
    def __init__(self):
        self.seen = {}
        self.wanted = {}
        # Types by variable, by first line of the function, by file; from some of its steps.
        self.kinds = {}
        self.steps = {}
        self.monitoring = getattr(sys, "monitoring", None)

    def want(self, filename):
        wanted = self.wanted.get(filename)
        if wanted is None:
            wanted = self.wanted[filename] = own(filename)
        return wanted

    def line(self, code, number):
        path = self.want(code.co_filename)
        if not path:
            return self.monitoring.DISABLE
        self.seen.setdefault(path, set()).add(number)
        self.look(path, sys._getframe(1))
        return None

    def look(self, path, frame):
        code = frame.f_code
        step = self.steps[code] = self.steps.get(code, 0) + 1
        # The first steps show most; a loop that runs for ever must not be watched for ever.
        if step > 40 and step % 64 or step > 6400 or code.co_name == "<module>":
            return
        kinds = self.kinds.setdefault(path, {}).setdefault(code.co_firstlineno, {})
        for name, value in frame.f_locals.items():
            kinds.setdefault(name, set()).add(type(value).__name__)

    def types(self):
        return {path: {line: {name: sorted(types) for name, types in names.items()}
                       for line, names in functions.items()}
                for path, functions in self.kinds.items()}

    def trace(self, frame, event, _):
        path = self.want(frame.f_code.co_filename)
        if not path:
            return None
        lines = self.seen.setdefault(path, set())
        lines.add(frame.f_lineno)

        def local(frame, event, _):
            if event == "line":
                lines.add(frame.f_lineno)
            if event in ("line", "return"):
                self.look(path, frame)
            return local

        return local

    def start(self):
        self.seen = {}
        if self.monitoring:
            self.tool = next(tool for tool in (3, 4, 1) if self.monitoring.get_tool(tool) is None)
            self.monitoring.use_tool_id(self.tool, "lula")
            event = self.monitoring.events.LINE
            self.monitoring.register_callback(self.tool, event, self.line)
            self.monitoring.set_events(self.tool, event)
        else:
            import threading
            threading.settrace(self.trace)
            sys.settrace(self.trace)

    def stop(self):
        if self.monitoring:
            try:
                self.monitoring.set_events(self.tool, 0)
                self.monitoring.free_tool_id(self.tool)
            except ValueError:
                pass
        else:
            import threading
            threading.settrace(None)
            sys.settrace(None)

    def take(self):
        return {path: sorted(lines) for path, lines in self.seen.items()}


def installed():
    # What the tests import that is not the project's own: worth importing once for all forks.
    names = set()
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None)
        if isinstance(origin, str) and not own(origin) and not name.startswith("lula_report"):
            names.add(name)
    return sorted(names)


def bare_calls(items, name_of):
    # Tests of pytest that need nothing but a call: their file, function and which of its cases.
    cases, plan = {}, {}
    for item in items:
        name, spec = getattr(item, "originalname", None), getattr(item, "callspec", None)
        node = name_of(item.nodeid)
        place = (node.split("::")[0], name)
        case = cases[place] = cases.get(place, -1) + 1
        given = set(spec.params) if spec else set()
        marks = [mark.name for mark in item.iter_markers()]
        bare = getattr(item, "cls", 0) is None and set(getattr(item, "fixturenames", "?")) <= given
        if bare and name and marks == ["parametrize"] * (1 if spec else 0):
            plan[node] = [place[0], name, case if spec else None]
    return plan
