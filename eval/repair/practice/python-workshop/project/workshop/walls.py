def trapped(heights):
    """How much water stays between walls."""
    left, right = 0, len(heights) - 1
    highest_left, highest_right = 0, 0
    total = 0
    while left < right:
        if heights[left] < heights[right]:
            highest_left = max(highest_left, heights[left])
            total += highest_left - heights[left]
            left += 1
        else:
            highest_right = max(highest_right, heights[right])
            total += highest_right - heights[right]
            right -= 1
    return total


def skyline(heights):
    """How many buildings are seen from the left."""
    tallest = 0
    seen = 0
    for height in heights:
        if height > tallest:
            seen += 1
            tallest = height
    return seen
