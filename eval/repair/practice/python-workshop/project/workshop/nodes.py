class Node:
    def __init__(self, value, next=None):
        self.value = value
        self.next = next


def build(values):
    head = None
    for value in reversed(values):
        head = Node(value, head)
    return head


def read(head):
    values = []
    while head is not None:
        values.append(head.value)
        head = head.next
    return values


def without(values, unwanted):
    head = build(values)
    first = Node(None, head)
    node = first
    while node.next is not None:
        if node.next.value == unwanted:
            node.next = node.next.next
        else:
            node = node.next
    return read(first.next)


def middle(values):
    head = build(values)
    slow = fast = head
    while fast is not None and fast.next is not None:
        slow = slow.next
        fast = fast.next.next
    return slow.value if slow is not None else None


def merged(a, b):
    a, b = build(a), build(b)
    first = last = Node(None)
    while a is not None and b is not None:
        if a.value <= b.value:
            last.next = a
            a = a.next
        else:
            last.next = b
            b = b.next
        last = last.next
    last.next = a if a is not None else b
    return read(first.next)


def paired(values):
    """Neighbours change places, two by two."""
    first = Node(None, build(values))
    node = first
    while node.next is not None and node.next.next is not None:
        one = node.next
        two = one.next
        one.next = two.next
        two.next = one
        node.next = two
        node = one
    return read(first.next)
