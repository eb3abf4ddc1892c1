"""The other side of `cargo xtask bench graph`: the same nine nodes in LangGraph.

    rival_langgraph.py BACKEND PLACE DURABILITY RUNS CONCURRENCY

BACKEND is sqlite (SqliteSaver; AsyncSqliteSaver where runs are concurrent) or postgres. Every
step is persisted before the next begins (durability="sync"). Prints one line of JSON.
"""

import asyncio
import json
import operator
import os
import resource
import sqlite3
import sys
import time
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph

NODES = ["ingest", "router", "policy_gate", "planner", "context_builder", "coder", "executor",
         "verifier", "reporter"]
WORDS = ("the test fails because value returned from parser is not checked before use so we add a "
         "guard and cover it with another case that would have found this error earlier on").split()
MASK = (1 << 64) - 1


def kilobyte(run: int, node: str) -> str:
    seed = (run * 0x9E3779B97F4A7C15) & MASK ^ len(node)
    text = ""
    while len(text) < 1024:
        seed = (seed * 6364136223846793005 + (len(node) | 1)) & MASK
        text += WORDS[(seed >> 59) % len(WORDS)] + " "
    return text[:1024]


# The texts are made beforehand: what is measured is the engine, not Python's string building.
TEXTS: dict[tuple[int, str], str] = {}


class State(TypedDict):
    number: int
    notes: Annotated[list[str], operator.add]


def build(saver):
    graph = StateGraph(State)
    for name in NODES:
        def body(state, name=name):
            return {"notes": [TEXTS[state["number"], name]]}
        graph.add_node(name, body)
    for before, after in zip([START, *NODES], [*NODES, END]):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=saver)


def config(number: int) -> dict:
    return {"configurable": {"thread_id": f"run-{number}"}}


def start(number: int) -> dict:
    return {"number": number, "notes": []}


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def sequential(app, runs: int) -> None:
    for number in range(runs):
        app.invoke(start(number), config(number), durability="sync")


async def concurrent(app, runs: int, width: int) -> None:
    gate = asyncio.Semaphore(width)

    async def one(number: int) -> None:
        async with gate:
            await app.ainvoke(start(number), config(number), durability="sync")

    await asyncio.gather(*(one(number) for number in range(runs)))


def measure(work) -> tuple[float, float]:
    began, used = time.perf_counter(), cpu()
    work()
    return time.perf_counter() - began, cpu() - used


async def measure_async(work) -> tuple[float, float]:
    began, used = time.perf_counter(), cpu()
    await work
    return time.perf_counter() - began, cpu() - used


def main() -> None:
    backend, place, durability, runs, width = sys.argv[1:]
    runs, width = int(runs), int(width)
    for number in range(runs):
        for name in NODES:
            TEXTS[number, name] = kilobyte(number, name)
    level = "FULL" if durability == "power-loss" else "NORMAL"
    size = None
    if backend == "sqlite":
        path = os.path.join(place, "langgraph.db")
        if width == 1:
            from langgraph.checkpoint.sqlite import SqliteSaver
            connection = sqlite3.connect(path, check_same_thread=False)
            saver = SqliteSaver(connection)
            saver.setup()
            connection.execute(f"PRAGMA synchronous={level}")
            seconds, used = measure(lambda: sequential(build(saver), runs))
            connection.close()
        else:
            import aiosqlite
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

            async def race():
                async with aiosqlite.connect(path) as connection:
                    saver = AsyncSqliteSaver(connection)
                    await saver.setup()
                    await connection.execute(f"PRAGMA synchronous={level}")
                    return await measure_async(concurrent(build(saver), runs, width))

            seconds, used = asyncio.run(race())
        database = sqlite3.connect(path)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        size = os.path.getsize(path) / runs
    else:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import AsyncConnectionPool

        async def race():
            options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
            async with AsyncConnectionPool(place, max_size=32, kwargs=options) as pool:
                saver = AsyncPostgresSaver(pool)
                await saver.setup()
                return await measure_async(concurrent(build(saver), runs, width))

        seconds, used = asyncio.run(race())
    steps = runs * len(NODES)
    print(json.dumps({
        "engine": "langgraph", "backend": backend, "durability": durability,
        "concurrency": width, "runs": runs, "seconds": seconds,
        "steps_per_second": steps / seconds, "cpu_us_per_step": used * 1e6 / steps,
        "bytes_per_run": size,
    }))


main()
