

# This part runs tests of candidates and of the project itself, in children that it can end.


def silence():
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)


def run(groups, record, ready=None):
    try:
        if request.get("bare"):
            run_bare(record, groups, request["plan"])
        elif request["framework"] == "pytest":
            run_pytest(record, groups, ready)
        else:
            run_unittest(record, request["files"], groups)
    except (SystemExit, OutOfTime) as error:
        record.note("run", "broken", "%s: %s" % (type(error).__name__, error))
    return record


def send_all(descriptor, value):
    data = json.dumps(value).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data):]


def end_with_parent():
    # The child is in a group of its own; a signal that ends the parent is meant for both.
    if libc:
        libc.prctl(1, signal.SIGKILL)


class Child:
    # A process for `work`, which it hands a way of telling; ended with all that it started.
    def __init__(self, work):
        self.receive, send = os.pipe()
        self.pid = fork()
        if self.pid == 0:
            try:
                os.setsid()
                end_with_parent()
                os.close(self.receive)
                os.close(answers)
                silence()
                work(lambda *told: send_all(send, told))
            except BaseException:
                send_all(send, ["died", traceback.format_exc()])
            finally:
                os._exit(0)
        os.close(send)
        self.rest = b""

    def hear(self, seconds):
        # What it tells next; None at its end, and False when it says nothing in this time.
        until = clock() + seconds
        while b"\n" not in self.rest:
            left = max(until - clock(), 0)
            if not select.select([self.receive], [], [], left)[0]:
                return False
            chunk = os.read(self.receive, 1 << 16)
            if not chunk:
                return None
            self.rest += chunk
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def end(self):
        for target in (kill_group, os.kill):
            try:
                target(self.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        os.waitpid(self.pid, 0)
        os.close(self.receive)


def run_project(cover):
    # All tests, in a child: one that cannot be interrupted is ended, and the rest run in another.
    done, preload, kinds, plan = {}, [], {}, {}

    def work(tell):
        if cover:
            signal.signal(signal.SIGALRM, out_of_time)
        seen = Cover() if cover else None
        record = Record(seen, tell, done)
        run(request["groups"], record)
        types = seen.types() if cover else {}
        tell("all", [list(record.tests.values()), installed() if cover else [], types, record.plan])

    while True:
        child = Child(work)
        running, hung = None, False
        while True:
            told = child.hear(limit + 1 if running else request["seconds"])
            if told is None or told is False:
                hung = told is False
                break
            kind, value = told
            if kind == "start":
                running = value
            elif kind == "end":
                running = None
                done[value["id"]] = value
            elif kind == "all":
                for test in value[0]:
                    done.setdefault(test["id"], test)
                preload, kinds, plan, running = value[1], value[2], value[3], None
            elif kind == "died":
                done["run"] = {"id": "run", "outcome": "broken", "message": value}
        child.end()
        if running is None:
            break
        reason = "did not end in %s seconds" % limit if hung else "ended the process that ran it"
        done[running] = {"id": running, "outcome": "broken", "message": "the test " + reason}
    answer({"tests": list(done.values()), "preload": preload, "kinds": kinds, "plan": plan})


class InPlace:
    # The project's own files, kept in memory where no test can reach them. Candidates stand where the
    # project stands, because what is installed knows it by that place; whatever the tests of one changed
    # is put back before the next.
    LEFT_OUT = {".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".lula", "target",
                "node_modules", ".tox", ".nox", ".hypothesis", ".eggs"}
    MOST_FILES, MOST_BYTES = 20000, 96 << 20

    def __init__(self):
        self.files, self.links, self.folders = {}, {}, {}
        size = 0
        for path, seen in self.scan():
            if stat.S_ISLNK(seen.st_mode):
                self.links[path] = os.readlink(path)
            elif stat.S_ISDIR(seen.st_mode):
                self.folders[path] = seen.st_mode & 0o7777
            elif stat.S_ISREG(seen.st_mode):
                size += seen.st_size
                if size > self.MOST_BYTES or len(self.files) > self.MOST_FILES:
                    raise TooLarge()
                self.files[path] = (seen.st_mode & 0o7777, bytes_of(path), (seen.st_atime_ns, seen.st_mtime_ns))
        self.known = {path: mark(seen) for path, seen in self.scan()}
        self.scratch = tempfile.mkdtemp(prefix="candidate-")
        # The clock of the file system must tell what comes later from what is there.
        time.sleep(0.02)

    def scan(self):
        found = []
        folders = [root]
        while folders:
            folder = folders.pop()
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue
            for entry in entries:
                try:
                    seen = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISDIR(seen.st_mode):
                    if entry.name in self.LEFT_OUT or entry.name.endswith(".egg-info"):
                        continue
                    if os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
                        continue
                    folders.append(entry.path)
                found.append((entry.path, seen))
        return found

    def enter(self, changed):
        for path, text in changed.items():
            full = os.path.join(root, path)
            if full not in self.files:
                raise RuntimeError("%s is not a file of the project" % path)
            self.place(full, self.files[full][0], text.encode(), None)
        return self

    def leave(self, changed):
        now = {path: mark(seen) for path, seen in self.scan()}
        for path in sorted(now, key=len, reverse=True):
            if path not in self.known:
                remove(path)
        for path in sorted(self.folders, key=len):
            if now.get(path) != self.known.get(path):
                if path in now and not now[path][0]:
                    remove(path)
                os.makedirs(path, exist_ok=True)
                os.chmod(path, self.folders[path])
                self.known[path] = mark(os.lstat(path))
        for path, target in self.links.items():
            if now.get(path) != self.known.get(path):
                remove(path)
                os.symlink(target, path)
                self.known[path] = mark(os.lstat(path))
        texts = {os.path.join(root, path) for path in changed}
        for path, (mode, data, times) in self.files.items():
            if path in texts or now.get(path) != self.known.get(path):
                self.place(path, mode, data, times)
        if os.listdir(self.scratch):
            shutil.rmtree(self.scratch, ignore_errors=True)
            os.makedirs(self.scratch, exist_ok=True)

    def place(self, path, mode, data, times):
        remove(path)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with open(descriptor, "wb") as file:
            file.write(data)
        os.chmod(path, mode)
        # Compiled code is told from stale by this.
        if times:
            os.utime(path, ns=times)
        self.known[path] = mark(os.lstat(path))


class TooLarge(Exception):
    pass


def mark(seen):
    # What changes when a file does; no program can set a ctime. A folder changes with what lies in it.
    if stat.S_ISDIR(seen.st_mode):
        return (True, seen.st_mode)
    return (False, seen.st_mode, seen.st_ino, seen.st_size, seen.st_ctime_ns)


def remove(path):
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def settle(scratch):
    tempfile.tempdir = None
    os.environ["TMPDIR"] = scratch


def judge(candidate, place, ready):
    # One candidate, in a child of its own.
    started = clock()
    *failing, passing = request["groups"]
    picked = candidate.get("passing")
    if picked is not None:
        passing = dict(passing, tests=[passing["tests"][index] for index in picked])
        passing.pop("files", None)
    place.enter(candidate["files"])
    try:
        tests = tests_of(place.scratch, failing + [passing], ready)
    finally:
        place.leave(candidate["files"])
    answer({"candidate": candidate["id"], "tests": tests, "ms": int((clock() - started) * 1000)})


def tests_of(scratch, groups, ready):

    def work(tell):
        settle(scratch)
        importlib.invalidate_caches()
        record = Record(None)

        def give_up(*_):
            # Whatever the test does about it, it has failed, and the candidate with it.
            if record.running:
                record.note(record.running, "broken", "out of time")
            tell("all", [[test["id"], test["outcome"]] for test in record.tests.values()])
            os._exit(0)

        signal.signal(signal.SIGALRM, give_up)
        signal.signal(signal.SIGPROF, give_up)
        run(groups, record, ready)
        tell("all", [[test["id"], test["outcome"]] for test in record.tests.values()])

    tests = None
    child = Child(work)
    told = child.hear(request["candidate_seconds"])
    if told and told[0] == "all":
        tests = [{"id": name, "outcome": outcome} for name, outcome in told[1]]
    child.end()
    return tests


def bare_is_fine(place):
    # Whether the tests show without pytest what they showed with it.
    if request["framework"] != "pytest" or request["bare"] is False:
        return False
    *failing, passing = (group["tests"] for group in request["groups"])
    failing = [name for group in failing for name in group]
    if any(os.path.basename(path) == "conftest.py" for path in place.files):
        return False
    if not all(name in request["plan"] for name in failing + passing):
        return False
    if request["bare"] is None:
        request["bare"] = True
        try:
            tests = tests_of(place.scratch, [{"tests": passing + failing, "stop": "never"}], None) or []
        finally:
            place.leave({})
        passed = {test["id"] for test in tests if test["outcome"] == "passed"}
        request["bare"] = passed.issuperset(passing) and passed.isdisjoint(failing)
        answer({"bare": request["bare"]})
    return request["bare"]


def wants_pytest(place):
    wanted = {os.path.realpath(known[0]) for known in request["plan"].values()}
    return any(b"pytest" in place.files[path][1] for path in wanted if path in place.files)


def compile_once():
    # Every child imports the same sources but one: compile them here, for all.
    from importlib.machinery import SourceFileLoader

    compiled = {}
    original = SourceFileLoader.source_to_code

    def source_to_code(self, data, path, *rest, **options):
        key = (os.fspath(path), bytes(data))
        if key not in compiled:
            compiled[key] = original(self, data, path, *rest, **options)
        return compiled[key]

    SourceFileLoader.source_to_code = source_to_code


def scan_once():
    # pytest looks for its plugins among everything that is installed, every time it starts.
    import functools
    import importlib.metadata as metadata

    installed = list(metadata.distributions())
    original = metadata.distributions
    metadata.distributions = lambda **options: original(**options) if options else iter(installed)
    metadata.PathDistribution.read_text = functools.lru_cache(None)(metadata.PathDistribution.read_text)


def holds_own():
    # Whether something of the project was imported, of which candidates need their own.
    return any(own(origin) for origin in
               (getattr(module, "__file__", None) for module in list(sys.modules.values())) if isinstance(origin, str))


def serve():
    from importlib.machinery import SourceFileLoader

    until = clock() + request["seconds"]
    try:
        place = InPlace()
    except TooLarge:
        answer({"cold": True})
        return
    compile_once()
    names = request["preload"]
    known = request["framework"] == "pytest" and all(
        name in request["plan"] for group in request["groups"] for name in group["tests"]
    )
    if known and request["bare"] is not False and not wants_pytest(place):
        names = [name for name in names if "pytest" not in name and name.split(".")[0] not in ("pluggy", "iniconfig")]
    elif request["framework"] == "pytest":
        scan_once()
        names = names + ["pytest"]
    search = list(sys.path)
    if request.get("path"):
        sys.path[:] = request["path"]
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException:
            pass
    if request["framework"] == "pytest" and "pytest" in names:
        import _pytest.config
        for name in _pytest.config.default_plugins:
            try:
                importlib.import_module("_pytest." + name)
            except BaseException:
                pass
    sys.path[:] = search
    # Some projects are what pytest itself is made of.
    if holds_own():
        answer({"cold": True})
        return
    for path in request["warm"]:
        full = os.path.join(root, path)
        try:
            SourceFileLoader("warm", full).source_to_code(bytes_of(full), full)
        except (OSError, SyntaxError, ValueError, TypeError):
            pass
    ready = None
    if not bare_is_fine(place) and request["framework"] == "pytest":
        request["bare"] = False
        # Whatever that imports or changes stays in a child where it does not work out.
        ready = make_ready(place)
        if request["same"] is None:
            request["same"] = shows_the_same(place, ready)
            answer({"same": request["same"]})
        if not request["same"]:
            return
    # What is there before the forks is left alone in them: pages that are not written to are shared.
    gc.collect()
    gc.freeze()
    for candidate in request["candidates"]:
        if clock() > until:
            break
        judge(candidate, place, ready)
    shutil.rmtree(place.scratch, ignore_errors=True)


def shows_the_same(place, ready):
    # Whether the failing tests fail here as they did under the project's own command, and not because
    # something is amiss: some tests that pass have to pass here, too.
    # The failing tests that take longest come last, and are not needed to tell.
    failing, _, passing = request["groups"]
    some = dict(passing, tests=passing["tests"][:20], stop="never")
    some.pop("files", None)
    try:
        fine = tests_of(place.scratch, [some], ready and ready[2:]) if some["tests"] else []
        place.leave({})
        bad = tests_of(place.scratch, [dict(failing, stop="never")], ready and ready[:1])
    finally:
        place.leave({})
    if fine is None or bad is None:
        return False
    passed = {test["id"] for test in fine if test["outcome"] == "passed"}
    failed = {test["id"] for test in bad if rank[test["outcome"]] > 1}
    return passed.issuperset(some["tests"]) and bool(failed)


def make_ready(place):
    def work(tell):
        settle(place.scratch)
        tell("fine", ready_pytest(request["groups"]) is not None)

    fine = request["ready"]
    if fine is None:
        child = Child(work)
        told = child.hear(limit)
        child.end()
        place.leave({})
        fine = bool(told) and told == ["fine", True]
        answer({"ready": fine})
    if not fine:
        return None
    back = os.environ.get("TMPDIR")
    settle(place.scratch)
    ready = ready_pytest(request["groups"])
    os.environ.pop("TMPDIR", None)
    if back is not None:
        os.environ["TMPDIR"] = back
    return ready


if request["mode"] == "serve":
    serve()
else:
    run_project(request["mode"] == "cover")
os._exit(0)
