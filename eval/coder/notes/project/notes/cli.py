"""notes add TITLE [TEXT], notes list, notes search WORD"""

import argparse

from notes.model import Note
from notes.store import Store


def parser():
    top = argparse.ArgumentParser(prog="notes")
    top.add_argument("--file", default="notes.tsv")
    commands = top.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add")
    add.add_argument("title")
    add.add_argument("text", nargs="?", default="")
    commands.add_parser("list")
    search = commands.add_parser("search")
    search.add_argument("word")
    return top


def main(words=None):
    given = parser().parse_args(words)
    store = Store(given.file)
    if given.command == "add":
        store.add(Note(given.title, given.text))
        return []
    notes = store.all() if given.command == "list" else store.search(given.word)
    for note in notes:
        print(f"{note.day}  {note.title}")
    return notes
