"""A note, and how it is written down."""

from dataclasses import dataclass, field
from datetime import date


@dataclass(frozen=True)
class Note:
    """One note."""

    title: str
    text: str = ""
    day: date = field(default_factory=date.today)

    def as_line(self):
        return f"{self.day.isoformat()}\t{self.title}\t{self.text}"

    @classmethod
    def of_line(cls, line):
        day, title, text = line.rstrip("\n").split("\t", 2)
        return cls(title, text, date.fromisoformat(day))
