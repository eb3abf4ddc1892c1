def insertion(values):
    values = list(values)
    for index in range(1, len(values)):
        value = values[index]
        place = index
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value
    return values


def selection(values):
    values = list(values)
    for start in range(len(values)):
        least = start
        for index in range(start + 1, len(values)):
            if values[index] < values[least]:
                least = index
        values[start], values[least] = values[least], values[start]
    return values


def counting(values):
    if not values:
        return []
    counts = [0] * (max(values) + 1)
    for value in values:
        counts[value] += 1
    out = []
    for value, count in enumerate(counts):
        out.extend([value] * count)
    return out


def flags(values):
    """Zeros, ones and twos in one pass."""
    values = list(values)
    low, at, high = 0, 0, len(values) - 1
    while at <= high:
        if values[at] == 0:
            values[low], values[at] = values[at], values[low]
            low += 1
            at += 1
        elif values[at] == 2:
            values[high], values[at] = values[at], values[high]
            high -= 1
        else:
            at += 1
    return values


def sift(heap, at):
    """Lets a value sink in a heap of the largest."""
    heap = list(heap)
    size = len(heap)
    while True:
        child = 2 * at + 1
        if child >= size:
            return heap
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[at] >= heap[child]:
            return heap
        heap[at], heap[child] = heap[child], heap[at]
        at = child
