

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
            run_pytest(record, request["files"], groups, ready)
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
    # The child is in a group of its own; whoever ends the parent means both.
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


def installed():
    # What the tests import that is not the project's own: worth importing once for all forks.
    names = set()
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None) or ""
        if origin and not os.path.realpath(origin).startswith(root + os.sep):
            names.add(name)
    return sorted(names)


def run_project(cover):
    # All tests, in a child: one that cannot be interrupted is ended, and the rest run in another.
    done, preload, kinds, plan = {}, [], {}, {}

    def work(tell):
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


class Pristine:
    # The project as it was handed over. Small files are kept in memory, where no test can reach
    # them; a larger one is copied from its place, and only while that is seen to be untouched.
    LEFT_OUT = {".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".lula", "target"}
    SMALL = 1 << 20

    def __init__(self):
        self.folders, self.links, self.files, self.large = [], [], [], []
        size = 0
        for folder, folders, files in os.walk(root):
            inside = os.path.relpath(folder, root)
            folders[:] = sorted(name for name in folders if name not in self.LEFT_OUT)
            for name in folders + files:
                path = os.path.normpath(os.path.join(inside, name))
                full = os.path.join(root, path)
                seen = os.lstat(full)
                if stat.S_ISLNK(seen.st_mode):
                    self.links.append((path, os.readlink(full)))
                elif stat.S_ISDIR(seen.st_mode):
                    self.folders.append(path)
                elif stat.S_ISREG(seen.st_mode):
                    size += seen.st_size
                    mode = seen.st_mode & 0o777
                    if seen.st_size > self.SMALL:
                        self.large.append((path, mode, (seen.st_ino, seen.st_size, seen.st_ctime_ns)))
                    else:
                        self.files.append((path, mode, bytes_of(full)))
        # Scratch space is memory: a large project is forked beside itself instead.
        roomy = size < 32 << 20
        self.base = tempfile.gettempdir() if roomy else os.path.join(root, ".lula")
        os.makedirs(self.base, exist_ok=True)
        self.place = tempfile.mkdtemp(prefix="candidate-", dir=self.base)

        # What the workspace held when it was last handed out, and what was changed in it.
        self.state, self.changed = None, {}

    def fork(self, changed):
        # A workspace with these texts changed, and its own place for temporary files. Every one
        # stands where the last one stood. It is made from nothing, unless nothing was done in the
        # last one: then it is the same but for the texts.
        top = os.path.join(self.place, "work")
        if self.state is None or self.look(self.place) != self.state:
            self.make(top)
            # The clock of the file system must tell what comes later from what is there.
            time.sleep(0.02)
            self.changed = {}
        for path, mode, data in self.files:
            if path in changed or path in self.changed:
                if path in changed:
                    mode, data = 0o644, changed[path].encode()
                os.unlink(os.path.join(top, path))
                write(os.path.join(top, path), mode, data)
        known = {path for path, _, _ in self.files}
        for path, text in changed.items():
            if path not in known:
                raise RuntimeError("%s is not a file of the project" % path)
        self.changed = changed
        self.state = self.look(self.place)
        return os.path.realpath(top)

    def make(self, top):
        shutil.rmtree(self.place, ignore_errors=True)
        os.mkdir(self.place, 0o700)
        os.mkdir(top)
        os.mkdir(os.path.join(self.place, "tmp"))
        for path in self.folders:
            os.mkdir(os.path.join(top, path))
        for path, target in self.links:
            os.symlink(target, os.path.join(top, path))
        for path, mode, data in self.files:
            write(os.path.join(top, path), mode, data)
        for path, mode, before in self.large:
            shutil.copyfile(os.path.join(root, path), os.path.join(top, path))
            now = os.lstat(os.path.join(root, path))
            if (now.st_ino, now.st_size, now.st_ctime_ns) != before:
                raise RuntimeError("%s was changed from another workspace" % path)

    def look(self, folder):
        # Everything below a folder with what changes when it does; nobody can set a ctime.
        found = []
        try:
            own = os.lstat(folder)
            found.append((folder, own.st_ino, own.st_mode, own.st_ctime_ns))
            with os.scandir(folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.is_dir(follow_symlinks=False):
                        below = self.look(entry.path)
                        if below is None:
                            return None
                        found += below
                    else:
                        seen = entry.stat(follow_symlinks=False)
                        found.append((entry.path, seen.st_ino, seen.st_size, seen.st_mode, seen.st_ctime_ns))
        except OSError:
            return None
        return found


def write(path, mode, data):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with open(descriptor, "wb") as file:
        file.write(data)


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def move_to(top):
    global root
    root = top
    os.chdir(root)
    tempfile.tempdir = None
    os.environ.update(PWD=root, TMPDIR=os.path.join(os.path.dirname(root), "tmp"))


def judge(candidate, pristine, ready):
    # One candidate, in a workspace and a child of its own.
    started = clock()
    tests = tests_of(pristine.fork(candidate["files"]), request["groups"], ready)
    answer({"candidate": candidate["id"], "tests": tests, "ms": int((clock() - started) * 1000)})


def tests_of(top, groups, ready):

    def work(tell):
        move_to(top)
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


def bare_is_fine(top, pristine):
    # Whether the tests show without pytest what they showed with it.
    if request["framework"] != "pytest" or request["bare"] is False:
        return False
    failing, passing = (group["tests"] for group in request["groups"])
    if any(os.path.basename(path) == "conftest.py" for path, _, _ in pristine.files):
        return False
    if not all(name in request["plan"] for name in failing + passing):
        return False
    if request["bare"] is None:
        request["bare"] = True
        tests = tests_of(top, [{"tests": passing + failing, "stop": "never"}], None) or []
        passed = {test["id"] for test in tests if test["outcome"] == "passed"}
        request["bare"] = passed.issuperset(passing) and passed.isdisjoint(failing)
        answer({"bare": request["bare"]})
    return request["bare"]


def wants_pytest(pristine):
    wanted = {place[0] for place in request["plan"].values()}
    return any(b"pytest" in data for path, _, data in pristine.files if path in wanted)


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


def serve():
    from importlib.machinery import SourceFileLoader

    until = clock() + request["seconds"]
    pristine = Pristine()
    top = pristine.fork({})
    compile_once()
    names = request["preload"]
    known = request["framework"] == "pytest" and all(
        name in request["plan"] for group in request["groups"] for name in group["tests"]
    )
    if known and request["bare"] is not False and not wants_pytest(pristine):
        names = [name for name in names if "pytest" not in name and name.split(".")[0] not in ("pluggy", "iniconfig")]
    elif request["framework"] == "pytest":
        scan_once()
        names = names + ["pytest"]
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException:
            pass
    for path in request["warm"]:
        full = os.path.join(top, path)
        try:
            SourceFileLoader("warm", full).source_to_code(bytes_of(full), full)
        except (OSError, SyntaxError, ValueError, TypeError):
            pass
    ready = None
    if not bare_is_fine(top, pristine) and request["framework"] == "pytest":
        request["bare"] = False
        # Whatever that imports or changes stays in a child where it does not work out.
        ready = make_ready(top)
    # What is there before the forks is left alone in them: pages that are not written to are shared.
    gc.collect()
    gc.freeze()
    for candidate in request["candidates"]:
        if clock() > until:
            break
        judge(candidate, pristine, ready)
    shutil.rmtree(pristine.place, ignore_errors=True)


def make_ready(top):
    def work(tell):
        move_to(top)
        prepare()
        tell("fine", ready_pytest(request["files"], request["groups"]) is not None)

    fine = request["ready"]
    if fine is None:
        child = Child(work)
        told = child.hear(limit)
        child.end()
        fine = bool(told) and told == ["fine", True]
        answer({"ready": fine})
    if not fine:
        return None
    back = os.getcwd()
    home = root
    move_to(top)
    prepare()
    ready = ready_pytest(request["files"], request["groups"])
    move_to(home)
    os.chdir(back)
    return ready


if request["mode"] == "serve":
    serve()
else:
    run_project(request["mode"] == "cover")
os._exit(0)
