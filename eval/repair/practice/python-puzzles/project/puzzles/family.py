class Person:
    def __init__(self, name, children=()):
        self.name = name
        self.children = list(children)


def line(person):
    """A person and everybody after them, depth first."""
    yield person.name
    for child in person.children:
        yield from line(child)


def generations(person):
    """How many generations there are."""
    if not person.children:
        return 1
    return 1 + max(generations(child) for child in person.children)


def find(person, name):
    """The person of that name, if there is one."""
    if person.name == name:
        return person
    for child in person.children:
        found = find(child, name)
        if found is not None:
            return found
    return None
