import heapq


def cheapest(roads, start, goal):
    """The least cost from start to goal; none where there is no road."""
    heap = [(0, start)]
    best = {}
    while heap:
        cost, town = heapq.heappop(heap)
        if town in best:
            continue
        best[town] = cost
        if town == goal:
            return cost
        for near, price in roads.get(town, {}).items():
            if near not in best:
                heapq.heappush(heap, (cost + price, near))
    return None


def platforms(stays):
    """How many platforms are needed for trains that arrive and leave."""
    events = []
    for arrival, departure in stays:
        events.append((arrival, 1))
        events.append((departure, -1))
    busy = most = 0
    for _, change in sorted(events):
        busy += change
        most = max(most, busy)
    return most
