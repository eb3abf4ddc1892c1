def stairs(n):
    """Ways up n stairs, one or two at a time."""
    ways = [1, 1]
    for step in range(2, n + 1):
        ways.append(ways[step - 1] + ways[step - 2])
    return ways[n]


def loot(houses):
    """The most that can be taken from houses that are not neighbours."""
    before, best = 0, 0
    for money in houses:
        before, best = best, max(best, before + money)
    return best


def cheapest(grid):
    """The cheapest way from the top left to the bottom right, down or right."""
    rows, columns = len(grid), len(grid[0])
    cost = [[0] * columns for _ in range(rows)]
    for row in range(rows):
        for column in range(columns):
            if row == 0 and column == 0:
                cost[row][column] = grid[row][column]
            elif row == 0:
                cost[row][column] = cost[row][column - 1] + grid[row][column]
            elif column == 0:
                cost[row][column] = cost[row - 1][column] + grid[row][column]
            else:
                cost[row][column] = min(cost[row - 1][column], cost[row][column - 1]) + grid[row][column]
    return cost[-1][-1]


def breakable(text, words):
    """Whether a text is made of words."""
    fine = [True] + [False] * len(text)
    for end in range(1, len(text) + 1):
        for start in range(end):
            if fine[start] and text[start:end] in words:
                fine[end] = True
                break
    return fine[-1]


def palindromes(text):
    """How many pieces of a text read the same backwards."""
    count = 0
    for centre in range(len(text)):
        for left, right in ((centre, centre), (centre, centre + 1)):
            while left >= 0 and right < len(text) and text[left] == text[right]:
                count += 1
                left -= 1
                right += 1
    return count
