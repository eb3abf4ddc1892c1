def depth(tree):
    if tree is None:
        return 0
    value, left, right = tree
    return 1 + max(depth(left), depth(right))


def balanced(tree):
    if tree is None:
        return True
    value, left, right = tree
    if abs(depth(left) - depth(right)) > 1:
        return False
    return balanced(left) and balanced(right)


def insert(tree, new):
    if tree is None:
        return (new, None, None)
    value, left, right = tree
    if new < value:
        return (value, insert(left, new), right)
    if new > value:
        return (value, left, insert(right, new))
    return tree


def inorder(tree):
    if tree is None:
        return []
    value, left, right = tree
    return inorder(left) + [value] + inorder(right)


def path_sum(tree, total):
    """Whether some way down to a leaf adds up."""
    if tree is None:
        return False
    value, left, right = tree
    if left is None and right is None:
        return value == total
    return path_sum(left, total - value) or path_sum(right, total - value)


def levels(tree):
    rows = []
    queue = [(tree, 0)]
    while queue:
        node, level = queue.pop(0)
        if node is None:
            continue
        if level == len(rows):
            rows.append([])
        rows[level].append(node[0])
        queue.append((node[1], level + 1))
        queue.append((node[2], level + 1))
    return rows
