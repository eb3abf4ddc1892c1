def power(base, exponent):
    """A whole power, by squaring."""
    if exponent == 0:
        return 1
    half = power(base, exponent // 2)
    if exponent % 2 == 0:
        return half * half
    return half * half * base


def binomial(n, k):
    """In how many ways k of n can be chosen."""
    if k == 0 or k == n:
        return 1
    return binomial(n - 1, k - 1) + binomial(n - 1, k)


def digits(number, base):
    """A number written in a base."""
    if number == 0:
        return "0"
    text = ""
    while number > 0:
        text = "0123456789abcdef"[number % base] + text
        number //= base
    return text
