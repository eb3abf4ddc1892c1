def lakes(rows):
    """Counts the connected patches of water."""
    seen = set()

    def fill(row, column):
        if row < 0 or column < 0 or row >= len(rows) or column >= len(rows[row]):
            return
        if rows[row][column] != "~" or (row, column) in seen:
            return
        seen.add((row, column))
        fill(row + 1, column)
        fill(row - 1, column)
        fill(row, column + 1)
        fill(row, column - 1)

    count = 0
    for row in range(len(rows)):
        for column in range(len(rows[row])):
            if rows[row][column] == "~" and (row, column) not in seen:
                fill(row, column)
                count += 1
    return count
