"""Measures repository maps.

    rival_aider.py cpu COMMAND...       what a command costs, as JSON
    rival_aider.py map PROJECT TOKENS   aider's map of a project, on standard output
"""

import json
import os
import resource
import subprocess
import sys
import time


def cpu(command):
    begun = time.monotonic()
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    wall = time.monotonic() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        json.dumps(
            {
                "cpu_seconds": used.ru_utime + used.ru_stime,
                "wall_seconds": wall,
                "bytes": len(ran.stdout),
                # What the map alone took, where the command says so.
                "map_cpu_seconds": next(
                    (
                        float(line.split(b"=")[1])
                        for line in ran.stdout.splitlines()
                        if line.startswith(b"# map_cpu_seconds=")
                    ),
                    None,
                ),
            }
        )
    )


def repo_map(project, tokens):
    from aider.io import InputOutput
    from aider.repomap import RepoMap

    class Model:
        """The estimate our map is fitted with: cheaper for aider than a tokenizer."""

        @staticmethod
        def token_count(text):
            return -(-len(text.encode()) // 3)

    files = []
    for directory, inner, names in os.walk(project):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        files += [os.path.join(directory, name) for name in sorted(names)]
    begun = time.process_time()
    repository = RepoMap(
        map_tokens=tokens, root=project, main_model=Model, io=InputOutput(pretty=False, yes=True)
    )
    text = repository.get_repo_map([], files)
    spent = time.process_time() - begun
    if not text or len(text) < tokens:
        sys.exit("aider made no map")
    print(text)
    print(f"# map_cpu_seconds={spent}")


if __name__ == "__main__":
    if sys.argv[1] == "cpu":
        cpu(sys.argv[2:])
    else:
        repo_map(sys.argv[2], int(sys.argv[3]))
