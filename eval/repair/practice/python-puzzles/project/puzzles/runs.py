def encode(text):
    """Runs of equal characters with their lengths."""
    out = []
    count = 0
    last = None
    for char in text:
        if char == last:
            count += 1
        else:
            if last is not None:
                out.append((last, count))
            last = char
            count = 1
    if last is not None:
        out.append((last, count))
    return out


def unique(values):
    """Each value once, where it first came."""
    seen = set()
    kept = []
    for value in values:
        if value not in seen:
            seen.add(value)
            kept.append(value)
    return kept


def pairs(values, total):
    """Pairs of sorted values that make a total."""
    found = []
    low, high = 0, len(values) - 1
    while low < high:
        made = values[low] + values[high]
        if made == total:
            found.append((values[low], values[high]))
            low += 1
            high -= 1
        elif made < total:
            low += 1
        else:
            high -= 1
    return found
