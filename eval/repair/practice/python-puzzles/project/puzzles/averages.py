def moving(values, width):
    """The mean of each window of that width."""
    means = []
    for start in range(len(values) - width + 1):
        window = values[start:start + width]
        means.append(sum(window) / width)
    return means


def median(values):
    """The middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
