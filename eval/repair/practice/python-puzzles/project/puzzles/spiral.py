def spiral(rows):
    """The values of a table from the outside in, clockwise."""
    values = []
    top, bottom = 0, len(rows) - 1
    left, right = 0, len(rows[0]) - 1
    while top <= bottom and left <= right:
        for column in range(left, right + 1):
            values.append(rows[top][column])
        top += 1
        for row in range(top, bottom + 1):
            values.append(rows[row][right])
        right -= 1
        if top <= bottom:
            for column in range(right, left - 1, -1):
                values.append(rows[bottom][column])
            bottom -= 1
        if left <= right:
            for row in range(bottom, top - 1, -1):
                values.append(rows[row][left])
            left += 1
    return values
