def order(needs):
    """Steps in an order in which each comes after what it needs; none where that cannot be."""
    left = {step: len(before) for step, before in needs.items()}
    ready = sorted(step for step, count in left.items() if count == 0)
    done = []
    while ready:
        step = ready.pop(0)
        done.append(step)
        for other in sorted(needs):
            if step in needs[other]:
                left[other] -= 1
                if left[other] == 0:
                    ready.append(other)
    if len(done) != len(needs):
        return None
    return done
