def permutations(items):
    if not items:
        return [[]]
    found = []
    for index, item in enumerate(items):
        rest = items[:index] + items[index + 1:]
        for tail in permutations(rest):
            found.append([item] + tail)
    return found


def combinations(items, size):
    if size == 0:
        return [[]]
    if not items:
        return []
    first, rest = items[0], items[1:]
    with_first = [[first] + tail for tail in combinations(rest, size - 1)]
    return with_first + combinations(rest, size)


def queens(n):
    """How many ways there are to place n queens."""
    def place(row, columns, rising, falling):
        if row == n:
            return 1
        count = 0
        for column in range(n):
            if column in columns or row + column in rising or row - column in falling:
                continue
            count += place(row + 1, columns | {column}, rising | {row + column}, falling | {row - column})
        return count

    return place(0, frozenset(), frozenset(), frozenset())


def brackets(pairs):
    found = []

    def extend(text, opened, closed):
        if len(text) == 2 * pairs:
            found.append(text)
            return
        if opened < pairs:
            extend(text + "(", opened + 1, closed)
        if closed < opened:
            extend(text + ")", opened, closed + 1)

    extend("", 0, 0)
    return found


def reachable(roads, start):
    seen = set()
    waiting = [start]
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        for near in roads.get(place, []):
            waiting.append(near)
    return sorted(seen)


def groups(count, friends):
    """How many groups of friends there are."""
    parent = list(range(count))

    def find(person):
        while parent[person] != person:
            person = parent[person]
        return person

    for a, b in friends:
        parent[find(a)] = find(b)
    return len({find(person) for person in range(count)})
