import tempfile
import unittest
from datetime import date
from pathlib import Path

from notes.cli import main
from notes.model import Note
from notes.store import Store


class NotesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "notes.tsv"
        self.addCleanup(self.folder.cleanup)

    def test_a_note_comes_back_from_its_line(self):
        note = Note("tea", "green\tor black", date(2026, 3, 1))
        self.assertEqual(Note.of_line(note.as_line()), note)

    def test_what_was_added_is_listed(self):
        main(["--file", str(self.path), "add", "tea"])
        main(["--file", str(self.path), "add", "cups", "six of them"])
        self.assertEqual([note.title for note in main(["--file", str(self.path), "list"])], ["tea", "cups"])

    def test_search_looks_into_title_and_text(self):
        store = Store(self.path)
        store.add(Note("tea", "green"))
        store.add(Note("cups", "for green tea"))
        self.assertEqual(len(store.search("GREEN")), 2)
        self.assertEqual(len(store.search("cups")), 1)


if __name__ == "__main__":
    unittest.main()
