def parse(text):
    """Settings as lines of name = value; lines that start with # say nothing."""
    found = {}
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, value = line.split("=", 1)
        found[name.strip()] = value.strip()
    return found


def collect(value, into=None):
    """Adds a value to a list, a new one where none is given."""
    if into is None:
        into = []
    into.append(value)
    return into


def discounted(price, percent):
    """A price less so many percent, in whole cents."""
    return price - price * percent // 100
