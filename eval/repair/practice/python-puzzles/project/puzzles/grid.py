from collections import deque


def distance(rows, start, goal):
    """Fewest steps from start to goal past the walls; none where there is no way."""
    queue = deque([(start, 0)])
    seen = {start}
    while queue:
        (row, column), steps = queue.popleft()
        if (row, column) == goal:
            return steps
        for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            near = (row + down, column + right)
            if not (0 <= near[0] < len(rows) and 0 <= near[1] < len(rows[0])):
                continue
            if rows[near[0]][near[1]] == "#" or near in seen:
                continue
            seen.add(near)
            queue.append((near, steps + 1))
    return None
