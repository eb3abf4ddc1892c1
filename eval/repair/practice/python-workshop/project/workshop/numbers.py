def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def root(n):
    """Adds up digits until one is left."""
    while n >= 10:
        total = 0
        while n > 0:
            total += n % 10
            n //= 10
        n = total
    return n


def luhn(number):
    total = 0
    for index, digit in enumerate(reversed(number)):
        value = int(digit)
        if index % 2 == 1:
            value *= 2
            if value > 9:
                value -= 9
        total += value
    return total % 10 == 0


def perfect(n):
    if n < 2:
        return False
    total = 1
    divisor = 2
    while divisor * divisor <= n:
        if n % divisor == 0:
            total += divisor
            if divisor != n // divisor:
                total += n // divisor
        divisor += 1
    return total == n


def fraction(top, bottom):
    """A fraction as whole part and reduced rest."""
    a, b = top, bottom
    while b:
        a, b = b, a % b
    top, bottom = top // a, bottom // a
    return (top // bottom, top % bottom, bottom)


def triangle(n):
    """Row n of the triangle of sums, from zero."""
    row = [1]
    for _ in range(n):
        row = [1] + [row[i] + row[i + 1] for i in range(len(row) - 1)] + [1]
    return row


def gray(bits):
    if bits == 0:
        return [""]
    shorter = gray(bits - 1)
    return ["0" + code for code in shorter] + ["1" + code for code in reversed(shorter)]
