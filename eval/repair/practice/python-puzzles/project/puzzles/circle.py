def last(names, step):
    """Who is left when every so-manieth leaves the circle."""
    circle = list(names)
    at = 0
    while len(circle) > 1:
        at = (at + step - 1) % len(circle)
        circle.pop(at)
    return circle[0]


def rotate(values, by):
    """Values moved to the right, the last ones to the front."""
    if not values:
        return []
    by %= len(values)
    return values[len(values) - by:] + values[:len(values) - by]


def leap(year):
    """Whether a year has a day more."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
