def longest_unique(text):
    """The longest piece without a letter twice."""
    last = {}
    start = 0
    best = 0
    for index, char in enumerate(text):
        if char in last and last[char] >= start:
            start = last[char] + 1
        last[char] = index
        best = max(best, index - start + 1)
    return best


def zigzag(text, rows):
    if rows == 1:
        return text
    lines = [""] * rows
    row, step = 0, 1
    for char in text:
        lines[row] += char
        if row == 0:
            step = 1
        elif row == rows - 1:
            step = -1
        row += step
    return "".join(lines)


def versions(a, b):
    """Below, equal or above: -1, 0 or 1."""
    a = [int(part) for part in a.split(".")]
    b = [int(part) for part in b.split(".")]
    length = max(len(a), len(b))
    a += [0] * (length - len(a))
    b += [0] * (length - len(b))
    if a < b:
        return -1
    if a > b:
        return 1
    return 0


def column(name):
    """The number of a spreadsheet's column."""
    number = 0
    for char in name:
        number = number * 26 + ord(char) - ord("A") + 1
    return number


def seconds(text):
    """1h2m3s as seconds."""
    units = {"h": 3600, "m": 60, "s": 1}
    total = 0
    digits = ""
    for char in text:
        if char.isdigit():
            digits += char
        else:
            total += int(digits) * units[char]
            digits = ""
    return total


def justify(words, width):
    """Fills lines with as many words as fit."""
    lines = []
    line = ""
    for word in words:
        if not line:
            line = word
        elif len(line) + 1 + len(word) <= width:
            line += " " + word
        else:
            lines.append(line)
            line = word
    if line:
        lines.append(line)
    return lines


def isomorphic(a, b):
    if len(a) != len(b):
        return False
    there, back = {}, {}
    for x, y in zip(a, b):
        if there.get(x, y) != y or back.get(y, x) != x:
            return False
        there[x] = y
        back[y] = x
    return True
