"""Amounts in cents, so that no float ever touches money."""


def parse(text):
    """Reads '12.50', '$1,200' or '-3.5' as cents."""
    cleaned = text.strip().replace("$", "").replace(",", "")
    negative = cleaned.startswith("-")
    if negative:
        cleaned = cleaned[1:]
    whole, _, fraction = cleaned.partition(".")
    if not whole.isdigit() or (fraction and not fraction.isdigit()):
        raise ValueError(f"not an amount: {text!r}")
    cents = int(whole) * 100 + int(fraction.ljust(2, "0")[:2] or 0)
    return -cents if negative else cents


def show(cents):
    """Writes cents as '$1,200.00'."""
    sign = "-" if cents < 0 else ""
    cents = abs(cents)
    return f"{sign}${cents // 100:,}.{cents % 100:02d}"


def split(cents, parts):
    """Shares an amount so that no cent is lost; the first parts get the odd cents."""
    if parts <= 0:
        raise ValueError("cannot split among nobody")
    share, rest = divmod(cents, parts)
    return [share + 1 if i < rest else share for i in range(parts)]


def percent(cents, rate):
    """A percentage of an amount, rounded half up."""
    return (cents * rate + 50) // 100
