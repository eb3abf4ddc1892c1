"""The other side of `cargo xtask bench graph --crash`: LangGraph under kill -9.

    rival_langgraph_crash.py race PLACE KILLS

The same delivery pipeline and the same world (a folder per run) as the crash test of lula-graph:
plan, edit in two rounds (look, edit, format), review, commit, push, report. A process works on six
runs at a time and is killed with SIGKILL at a random moment; the next one goes on with what the
checkpointer kept (SqliteSaver, durability="sync"), in the way that is kindest to LangGraph: a
thread with nothing kept is started, one with tasks left is invoked with None (`next`, which its
documentation looks at, is empty too early: those cases are counted). Nodes are written plainly, as
in its documentation: what was done in a node that a crash cut off is done again. In the end
everything is driven without disturbance. Prints one line of JSON.
"""

import json
import operator
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

ROUNDS = 2
AT_ONCE = 6


class State(TypedDict):
    run: str
    done: int
    notes: Annotated[list[str], operator.add]


class World:
    """One folder per run; each act takes a moment, before and after."""

    def __init__(self, place: str):
        self.place = os.path.join(place, "world")

    def folder(self, run: str) -> str:
        path = os.path.join(self.place, run)
        os.makedirs(path, exist_ok=True)
        return path

    def lines(self, run: str, name: str) -> list[str]:
        try:
            with open(os.path.join(self.folder(run), name)) as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def act(self, run: str, name: str, line: str) -> None:
        time.sleep(0.0003)
        if name:
            with open(os.path.join(self.folder(run), name), "a") as file:
                file.write(line + "\n")
        time.sleep(0.0003)

    def end(self, run: str) -> tuple:
        return (self.lines(run, "tree"), len(self.lines(run, "commits")),
                len(self.lines(run, "pushes")))


def build(saver, world: World):
    def plan(state):
        world.act(state["run"], "", "")
        return {"notes": ["a plan"]}

    def edit(state):
        run, done = state["run"], state["done"]
        seen = len(world.lines(run, "tree"))
        world.act(run, "tree", f"edit {seen} lines/{done}")
        world.act(run, "tree", f"format {seen} lines/{done}")
        return {"done": done + 1, "notes": [f"round {done}: {'n' * 5000}"]}

    def commit(state):
        world.act(state["run"], "commits", "commit")
        return {"notes": ["committed"]}

    def push(state):
        world.act(state["run"], "pushes", "push")
        return {"notes": ["pushed"]}

    graph = StateGraph(State)
    graph.add_node("plan", plan)
    graph.add_node("edit", edit)
    graph.add_node("review", lambda state: {"notes": ["reviewed"]})
    graph.add_node("commit", commit)
    graph.add_node("push", push)
    graph.add_node("report", lambda state: {"notes": ["reported"]})
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "edit")
    graph.add_edge("edit", "review")
    graph.add_conditional_edges(
        "review", lambda state: "edit" if state["done"] < ROUNDS else "commit", ["edit", "commit"])
    graph.add_edge("commit", "push")
    graph.add_edge("push", "report")
    graph.add_edge("report", END)
    return graph.compile(checkpointer=saver)


def open_app(place: str):
    connection = sqlite3.connect(os.path.join(place, "langgraph.db"), check_same_thread=False,
                                 timeout=30)
    saver = SqliteSaver(connection)
    saver.setup()
    return build(saver, World(place))


def config(run: str) -> dict:
    return {"configurable": {"thread_id": run}}


def is_over(app, run: str) -> bool:
    kept = app.get_state(config(run))
    return bool(kept.values) and not kept.tasks


def seems_over(app, run: str) -> bool:
    """Killed between a node's writes and the next checkpoint, a thread has no `next` any more."""
    kept = app.get_state(config(run))
    return bool(kept.values) and not kept.next and bool(kept.tasks)


def drive(app, run: str) -> None:
    kept = app.get_state(config(run))
    if not kept.values and not kept.tasks:
        app.invoke({"run": run, "done": 0, "notes": []}, config(run), durability="sync")
    elif kept.tasks:
        app.invoke(None, config(run), durability="sync")


def work(place: str, runs: list[str]) -> None:
    app = open_app(place)
    print("ready", flush=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for outcome in [pool.submit(drive, app, run) for run in runs]:
            outcome.result()


def race(place: str, kills: int) -> None:
    app, world = open_app(place), World(place)
    drive(app, "reference")
    wanted = world.end("reference")
    dice = random.Random(1)
    runs: list[str] = []
    caught = seemed_over = 0
    for _ in range(kills):
        open_runs = [run for run in runs if not is_over(app, run)]
        while len(open_runs) < AT_ONCE:
            runs.append(f"run-{len(runs)}")
            open_runs.append(runs[-1])
        victim = subprocess.Popen([sys.executable, __file__, "work", place, *open_runs],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        victim.stdout.readline()
        time.sleep(dice.uniform(0.0, 0.12))
        caught += victim.poll() is None
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        seemed_over += sum(seems_over(app, run) for run in open_runs)
    errors = 0
    for _ in range(3):
        for run in runs:
            try:
                drive(app, run)
            except Exception:  # noqa: BLE001 - a run that cannot go on is what is counted
                errors += 1
    over = [run for run in runs if is_over(app, run)]
    ends = {run: world.end(run) for run in over}
    print(json.dumps({
        "engine": "langgraph", "backend": "sqlite", "kills": kills, "killed_at_work": caught,
        "runs": len(runs), "stuck": len(runs) - len(over), "errors": errors,
        "seemed_over": seemed_over,
        "lost_external": sum(1 for end in ends.values() if end[2] == 0),
        "doubled_external": sum(max(0, end[2] - 1) for end in ends.values()),
        "ended_otherwise": sum(1 for end in ends.values() if end != wanted),
    }))


def main() -> None:
    mode, place, *rest = sys.argv[1:]
    if mode == "work":
        work(place, rest)
    else:
        race(place, int(rest[0]))


main()
