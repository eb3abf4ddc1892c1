def best(things, room):
    """The most value that fits; each thing once, as (size, value)."""
    table = [0] * (room + 1)
    for size, value in things:
        for space in range(room, size - 1, -1):
            table[space] = max(table[space], table[space - size] + value)
    return table[room]


def gap(values):
    """The largest difference between a value and an earlier, smaller one."""
    least = values[0]
    largest = 0
    for value in values[1:]:
        largest = max(largest, value - least)
        least = min(least, value)
    return largest


def highest(rows):
    """The largest value in a table, negative ones too."""
    top = None
    for row in rows:
        for value in row:
            if top is None or value > top:
                top = value
    return top
