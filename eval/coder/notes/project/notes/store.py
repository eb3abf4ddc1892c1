"""Notes in a file, one a line."""

from pathlib import Path

from notes.model import Note


class Store:
    """All notes of one file."""

    def __init__(self, path):
        self.path = Path(path)

    def add(self, note):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(note.as_line() + "\n")

    def all(self):
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8") as file:
            return [Note.of_line(line) for line in file if line.strip()]

    def search(self, word):
        word = word.lower()
        return [note for note in self.all() if word in (note.title + " " + note.text).lower()]
