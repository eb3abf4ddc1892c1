def sieve(limit):
    """Primes up to and with a limit."""
    marked = [False] * (limit + 1)
    primes = []
    for number in range(2, limit + 1):
        if not marked[number]:
            primes.append(number)
            for multiple in range(number * number, limit + 1, number):
                marked[multiple] = True
    return primes


def factors(number):
    """The prime factors, smallest first."""
    found = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    if number > 1:
        found.append(number)
    return found
