/** Puts a value into a search tree; gives back the tree. */
export function insert(tree, value) {
  if (tree === null) return { value, left: null, right: null };
  if (value < tree.value) {
    return { ...tree, left: insert(tree.left, value) };
  }
  return { ...tree, right: insert(tree.right, value) };
}

/** The values in order. */
export function inOrder(tree) {
  if (tree === null) return [];
  return [...inOrder(tree.left), tree.value, ...inOrder(tree.right)];
}

/** How deep the tree is. */
export function depth(tree) {
  if (tree === null) return 0;
  return 1 + Math.max(depth(tree.left), depth(tree.right));
}

/** Whether a value is in the tree. */
export function has(tree, value) {
  let node = tree;
  while (node !== null) {
    if (node.value === value) return true;
    node = value < node.value ? node.left : node.right;
  }
  return false;
}
