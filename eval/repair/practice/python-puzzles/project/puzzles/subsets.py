def subsets(items):
    """Every subset, in order of the items taken."""
    found = []

    def choose(start, taken):
        found.append(taken[:])
        for index in range(start, len(items)):
            taken.append(items[index])
            choose(index + 1, taken)
            taken.pop()

    choose(0, [])
    return found
