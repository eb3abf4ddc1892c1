def place(values, value):
    """Where a value belongs in a sorted list, before its equals."""
    low = 0
    high = len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
