//! Mistakes and their mends: every mend must be among the proposals.

use super::*;

fn normal_form(source: &ParsedSource, text: &str) -> Option<u64> {
    let tree = source.language.parse(text)?;
    let broken = tree.root_node().has_error() && !source.root().has_error();
    form_of(tree.root_node(), text).filter(|_| !broken)
}

/// Whether some candidate turns the wrong text into the right one.
fn mends(path: &str, wrong: &str, right: &str, message: &str) -> bool {
    let source = ParsedSource::parse(path, wrong.as_bytes()).unwrap();
    let heat = Heat::even(std::slice::from_ref(&source), 1.0);
    let clues = Clues::read([message].into_iter());
    let wanted = normal_form(&source, right).expect("the mend parses");
    propose(&source, &heat, &clues)
        .iter()
        .filter_map(|candidate| candidate.apply(wrong))
        .any(|text| text == right || normal_form(&source, &text) == Some(wanted))
}

fn check(path: &str, cases: &[(&str, &str)]) {
    for (wrong, right) in cases {
        assert!(
            mends(path, wrong, right, ""),
            "nothing turns\n{wrong}\ninto\n{right}"
        );
    }
}

#[test]
fn python_mistakes_are_mended() {
    check(
        "a.py",
        &[
            (
                "def f(a, b):\n    return a < b\n",
                "def f(a, b):\n    return a <= b\n",
            ),
            (
                "def f(a, b):\n    return a - b\n",
                "def f(a, b):\n    return b - a\n",
            ),
            (
                "def f(a, b):\n    if a or b:\n        return 1\n",
                "def f(a, b):\n    if a and b:\n        return 1\n",
            ),
            (
                "def f(xs):\n    return xs[1:3]\n",
                "def f(xs):\n    return xs[1:3 + 1]\n",
            ),
            (
                "def f(n):\n    return list(range(n))\n",
                "def f(n):\n    return list(range(1, n + 1))\n",
            ),
            (
                "def f(d, k):\n    return d[k]\n",
                "def f(d, k):\n    return d.get(k, 0)\n",
            ),
            (
                "def f(xs=[]):\n    return xs\n",
                "def f(xs=None):\n    if xs is None:\n        xs = []\n    return xs\n",
            ),
            (
                "def f(xs):\n    return sum(xs) / len(xs)\n",
                "def f(xs):\n    if not xs:\n        return 0\n    return sum(xs) / len(xs)\n",
            ),
            (
                "def f(xs):\n    for x in xs:\n        y = x\n        return y\n",
                "def f(xs):\n    for x in xs:\n        y = x\n    return y\n",
            ),
            (
                "def f(a):\n    b = a + 1\n",
                "def f(a):\n    b = a + 1\n    return b\n",
            ),
            (
                "def f(xs):\n    return sorted(xs)\n",
                "def f(xs):\n    return sorted(xs, reverse=True)\n",
            ),
            (
                "def f(xs):\n    for x in xs:\n        if x:\n            break\n",
                "def f(xs):\n    for x in xs:\n        if x:\n            continue\n",
            ),
            (
                "def f(x):\n    return 'a' if x else 'b'\n",
                "def f(x):\n    return 'b' if x else 'a'\n",
            ),
            (
                "def f(s):\n    return s.lstrip()\n",
                "def f(s):\n    return s.rstrip()\n",
            ),
            ("def f(x):\n    yield x\n", "def f(x):\n    yield from x\n"),
        ],
    );
}

#[test]
fn javascript_and_typescript_mistakes_are_mended() {
    let cases = [
        (
            "function f(a, b) {\n  return a === b;\n}\n",
            "function f(a, b) {\n  return a !== b;\n}\n",
        ),
        (
            "function f(xs) {\n  return xs.sort();\n}\n",
            "function f(xs) {\n  return xs.sort((a, b) => a - b);\n}\n",
        ),
        (
            "function f(x) {\n  return x.y;\n}\n",
            "function f(x) {\n  return x?.y;\n}\n",
        ),
        (
            "function f(x) {\n  return x || 1;\n}\n",
            "function f(x) {\n  return x ?? 1;\n}\n",
        ),
        (
            "function f(xs) {\n  return xs[xs.length];\n}\n",
            "function f(xs) {\n  return xs[xs.length - 1];\n}\n",
        ),
        (
            "function f(a, b) {\n  return g(a, b);\n}\n",
            "function f(a, b) {\n  return g(b, a);\n}\n",
        ),
        (
            "function f(n) {\n  for (let i = 0; i <= n; i++) {\n    g(i);\n  }\n}\n",
            "function f(n) {\n  for (let i = 0; i < n; i++) {\n    g(i);\n  }\n}\n",
        ),
    ];
    check("a.js", &cases);
    check("a.ts", &cases);
    check(
        "a.ts",
        &[(
            "function f(a: number, b: number): boolean {\n  return a > b;\n}\n",
            "function f(a: number, b: number): boolean {\n  return a >= b;\n}\n",
        )],
    );
}

#[test]
fn rust_mistakes_are_mended() {
    check(
        "a.rs",
        &[
            (
                "fn f(n: u32) -> u32 { (0..n).sum() }",
                "fn f(n: u32) -> u32 { (0..=n).sum() }",
            ),
            (
                "fn f(a: u32, b: u32) -> u32 { a - b }",
                "fn f(a: u32, b: u32) -> u32 { a.saturating_sub(b) }",
            ),
            (
                "fn f(a: i32, b: i32) -> i32 { a.max(b) }",
                "fn f(a: i32, b: i32) -> i32 { a.min(b) }",
            ),
            (
                "fn f(a: bool) -> bool { if a { true } else { false } }",
                "fn f(a: bool) -> bool { if !a { true } else { false } }",
            ),
            (
                "fn f(a: i32) -> bool { a > 1 }",
                "fn f(a: i32) -> bool { a > 2 }",
            ),
        ],
    );
}

#[test]
fn an_error_that_a_test_waits_for_is_raised() {
    let wrong = "def f(n):\n    return n * 2\n";
    let right =
        "def f(n):\n    if n < 0:\n        raise ValueError(\"invalid value\")\n    return n * 2\n";
    assert!(mends(
        "a.py",
        wrong,
        right,
        "AssertionError: ValueError not raised"
    ));
    assert!(
        !mends("a.py", wrong, right, ""),
        "without the clue nobody would guess the error"
    );
}

#[test]
fn the_same_program_is_tried_once() {
    let source = ParsedSource::parse("a.py", b"def f(a):\n    return a\n").unwrap();
    let mut forms = NormalForms::default();
    forms.know(&source);
    let candidate = |text: &str| CandidatePatch {
        path: "a.py".to_owned(),
        edits: vec![ByteRangeEdit {
            start: 21,
            end: 22,
            text: text.to_owned(),
        }],
        family: PatchFamily::Expression,
        line: 2,
        suspicion: 1.0,
        prior: 1.0,
    };
    assert!(forms.admit(&source, &candidate("a + 1")).is_some());
    assert!(
        forms.admit(&source, &candidate("a  +  1")).is_none(),
        "spacing"
    );
    assert!(
        forms.admit(&source, &candidate("(a + 1)")).is_none(),
        "brackets"
    );
    assert!(
        forms.admit(&source, &candidate("a")).is_none(),
        "the original"
    );
    assert!(
        forms.admit(&source, &candidate("a +")).is_none(),
        "not a program"
    );
}

#[test]
fn values_of_the_wrong_shape_are_mended() {
    check(
        "a.py",
        &[
            (
                "def d(node):\n    return d(node.left) + d(node)\n\ndef w(node):\n    return node.right\n",
                "def d(node):\n    return d(node.left) + d(node.right)\n\ndef w(node):\n    return node.right\n",
            ),
            (
                "def f(xs):\n    best = 0\n    for x in xs:\n        if x > best:\n            best = x\n    return best\n",
                "def f(xs):\n    best = float('-inf')\n    for x in xs:\n        if x > best:\n            best = x\n    return best\n",
            ),
            (
                "def f(s):\n    out = []\n    for c in s:\n        out.append(c)\n    return out\n",
                "def f(s):\n    out = []\n    for c in s:\n        out.append(c)\n    return ''.join(out)\n",
            ),
            (
                "def f(xs):\n    return xs.sort()\n",
                "def f(xs):\n    return sorted(xs)\n",
            ),
            (
                "def f(lines, n):\n    out = []\n    while len(lines) > n:\n        out.append(lines[:n])\n        lines = lines[n:]\n    return out\n",
                "def f(lines, n):\n    out = []\n    while len(lines) > n:\n        out.append(lines[:n])\n        lines = lines[n:]\n    out.append(lines)\n    return out\n",
            ),
            (
                "class A:\n    def g(self):\n        return self.x\n    def s(self, v):\n        x = v\n",
                "class A:\n    def g(self):\n        return self.x\n    def s(self, v):\n        self.x = v\n",
            ),
            (
                "def f(s):\n    return s.lower() == 'a'\n",
                "def f(s):\n    return s.strip().lower() == 'a'\n",
            ),
            (
                "def f(i, j, xs):\n    return xs[i][j]\n",
                "def f(i, j, xs):\n    return xs[j][i]\n",
            ),
            (
                "def f(i, xs):\n    return xs[i + 1]\n",
                "def f(i, xs):\n    return xs[(i + 1) % len(xs)]\n",
            ),
        ],
    );
    check(
        "a.js",
        &[
            (
                "function f(x) { return x == 0; }\n",
                "function f(x) { return x === 0; }\n",
            ),
            (
                "function f(xs) { return xs.sort(); }\n",
                "function f(xs) { return xs.slice().sort(); }\n",
            ),
            (
                "function f(s) { return s.length; }\n",
                "function f(s) { return s.trim().length; }\n",
            ),
            (
                "function f(s) { return Number(s); }\n",
                "function f(s) { return parseInt(s, 10); }\n",
            ),
            (
                "function f(xs) { for (const i in xs) { g(i); } }\n",
                "function f(xs) { for (const i of xs) { g(i); } }\n",
            ),
        ],
    );
    check(
        "a.rs",
        &[
            (
                "fn f(x: Option<i32>) -> i32 { x.unwrap() }\n",
                "fn f(x: Option<i32>) -> i32 { x.unwrap_or(0) }\n",
            ),
            (
                "fn f(s: &str) -> String { s.to_string() }\n",
                "fn f(s: &str) -> String { s.trim().to_string() }\n",
            ),
            (
                "fn f(i: usize, xs: &[i32]) -> i32 { xs[i + 1] }\n",
                "fn f(i: usize, xs: &[i32]) -> i32 { xs[(i + 1) % xs.len()] }\n",
            ),
        ],
    );
}

#[test]
fn what_a_small_algorithm_lacks_is_found() {
    check(
        "a.py",
        &[
            // What was seen is never remembered.
            (
                "def f(xs):\n    seen = set()\n    out = []\n    for x in xs:\n        if x not in seen:\n            out.append(x)\n    return out\n",
                "def f(xs):\n    seen = set()\n    out = []\n    for x in xs:\n        if x not in seen:\n            seen.add(x)\n            out.append(x)\n    return out\n",
            ),
            // What was remembered is never asked for.
            (
                "def f(xs):\n    seen = set()\n    out = []\n    for x in xs:\n        seen.add(x)\n        out.append(x)\n    return out\n",
                "def f(xs):\n    seen = set()\n    out = []\n    for x in xs:\n        if x not in seen:\n            seen.add(x)\n            out.append(x)\n    return out\n",
            ),
            // The best so far is whatever came last.
            (
                "def f(xs):\n    best = 0\n    for x in xs:\n        best = x\n    return best\n",
                "def f(xs):\n    best = 0\n    for x in xs:\n        best = max(best, x)\n    return best\n",
            ),
            // Nothing is asked of a list before its end is.
            (
                "def f(stack, c):\n    if stack.pop() != c:\n        return False\n    return True\n",
                "def f(stack, c):\n    if not stack or stack.pop() != c:\n        return False\n    return True\n",
            ),
            (
                "def f(stack):\n    return True\n",
                "def f(stack):\n    return not stack\n",
            ),
            // There is no end to a recursion.
            (
                "def f(n):\n    return n * f(n - 1)\n",
                "def f(n):\n    if n == 0:\n        return 1\n    return n * f(n - 1)\n",
            ),
            (
                "def f(n, k):\n    return f(n - 1, k - 1)\n",
                "def f(n, k):\n    return f(n - 1, k - 1) + f(n - 1, k)\n",
            ),
            // The same index, one off in both places.
            (
                "def f(xs, i):\n    return xs[i] + xs[i + 1]\n",
                "def f(xs, i):\n    return xs[i - 1] + xs[i]\n",
            ),
            // What is left when the loop ends.
            (
                "def f(n):\n    out = []\n    d = 2\n    while d < n:\n        d += 1\n    return out\n",
                "def f(n):\n    out = []\n    d = 2\n    while d < n:\n        d += 1\n    if n > 1:\n        out.append(n)\n    return out\n",
            ),
            (
                "def f(groups, key, x):\n    groups[key].append(x)\n",
                "def f(groups, key, x):\n    groups.setdefault(key, []).append(x)\n",
            ),
            // A walker that stands still.
            (
                "def f(node, word):\n    for c in word:\n        if c not in node:\n            return False\n    return True\n",
                "def f(node, word):\n    for c in word:\n        if c not in node:\n            return False\n        node = node[c]\n    return True\n",
            ),
        ],
    );
    check(
        "a.js",
        &[
            (
                "function f(xs) {\n  const out = [];\n  for (const x of xs) {\n    out.push(f(x));\n  }\n  return out;\n}\n",
                "function f(xs) {\n  const out = [];\n  for (const x of xs) {\n    out.push(...f(x));\n  }\n  return out;\n}\n",
            ),
            (
                "function f(a, b) {\n  let i = 0;\n  let j = 0;\n  const out = [];\n  return out.concat(a.slice(i));\n}\n",
                "function f(a, b) {\n  let i = 0;\n  let j = 0;\n  const out = [];\n  return out.concat(a.slice(i), b.slice(j));\n}\n",
            ),
            (
                "function f(m, k) {\n  m.set(k, 1);\n}\n",
                "function f(m, k) {\n  m.set(k, (m.get(k) ?? 0) + 1);\n}\n",
            ),
            (
                "function f(out, key, x) {\n  out[key].push(x);\n}\n",
                "function f(out, key, x) {\n  if (!(key in out)) out[key] = [];\n  out[key].push(x);\n}\n",
            ),
            (
                "function f(w) {\n  return w.split('').join('');\n}\n",
                "function f(w) {\n  return w.split('').sort().join('');\n}\n",
            ),
        ],
    );
}

#[test]
fn what_nobody_means_comes_last() {
    let text = "def f(price, share):\n    return price * share // 10\n";
    let source = ParsedSource::parse("a.py", text.as_bytes()).unwrap();
    let heat = Heat::even(std::slice::from_ref(&source), 1.0);
    let proposed = propose(&source, &heat, &Clues::default());
    let weight = |wanted: &str| {
        proposed
            .iter()
            .filter(|candidate| {
                candidate
                    .apply(text)
                    .is_some_and(|new| new.contains(wanted))
            })
            .map(CandidatePatch::weight)
            .fold(0.0, f64::max)
    };
    assert!(weight("share // 100\n") > weight("share * share"));
    assert!(weight("share // 100\n") > weight("price * price"));
}
