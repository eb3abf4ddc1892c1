//! Ways through a tree.

use tree_sitter::Node;

/// Every node of a tree, parents before children.
pub(crate) fn walk(root: Node<'_>) -> Vec<Node<'_>> {
    let mut found = Vec::new();
    let mut cursor = root.walk();
    loop {
        found.push(cursor.node());
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

/// The child at an index.
pub(crate) fn child(node: Node<'_>, index: usize) -> Option<Node<'_>> {
    node.child(u32::try_from(index).ok()?)
}

/// How many children there are.
pub(crate) fn children(node: Node<'_>) -> usize {
    node.child_count() as usize
}

/// The named children, comments left out.
pub(crate) fn named(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|child| !child.kind().contains("comment"))
        .collect()
}

/// The nearest ancestor, the node itself included, that satisfies a condition.
pub(crate) fn nearest<'t>(node: Node<'t>, wanted: impl Fn(Node<'t>) -> bool) -> Option<Node<'t>> {
    let mut current = Some(node);
    while let Some(node) = current {
        if wanted(node) {
            return Some(node);
        }
        current = node.parent();
    }
    None
}
