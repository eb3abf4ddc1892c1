//! From changed lines to what uses the definitions there.

use std::collections::BTreeSet;

use lula_index::DependentFile;

use crate::project::Project;

const PRICES: &str = "\
LIMIT = 3


def rounded(price):
    return round(price, 2)


def doubled(price):
    return price * 2
";

const CART: &str = "\
from prices import rounded


class Cart:
    def __init__(self, prices):
        self.prices = prices

    def sum_of_all(self):
        return rounded(sum(self.prices))

    def count(self):
        return len(self.prices)
";

const FILES: [(&str, &str); 6] = [
    ("prices.py", PRICES),
    ("cart.py", CART),
    (
        "tests/test_cart.py",
        "from cart import Cart\n\n\ndef test_sum():\n    assert Cart([1]).sum_of_all() == 1\n",
    ),
    (
        "tests/test_count.py",
        "from shelf import anything\n\n\ndef test_count():\n    assert anything().count() == 1\n",
    ),
    (
        "tests/test_doubled.py",
        "from prices import doubled\n\n\ndef test_doubled():\n    assert doubled(1) == 2\n",
    ),
    (
        "tests/test_other.py",
        "def test_other():\n    assert 1 + 1 == 2\n",
    ),
];

fn names(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|&name| name.to_owned()).collect()
}

fn users(of: &[&str], steps: usize) -> Vec<(String, usize)> {
    let index = Project::new(FILES).index();
    let text = |path: &str| {
        let mut files = FILES.iter();
        files.find(|(name, _)| *name == path).map(|(_, text)| *text)
    };
    let users = index.users(&names(of), steps, &text);
    let pair = |user: DependentFile| (user.path, user.steps);
    users.into_iter().map(pair).collect()
}

#[test]
fn a_changed_line_names_the_innermost_definition() {
    let index = Project::new(FILES).index();
    assert_eq!(index.names_at("prices.py", &[(5, 5)]), names(&["rounded"]));
    assert_eq!(
        index.names_at("prices.py", &[(5, 9)]),
        names(&["rounded", "doubled"])
    );
    assert_eq!(index.names_at("cart.py", &[(9, 9)]), names(&["sum_of_all"]));
    // Special methods and plain names are used through what they belong to.
    assert_eq!(index.names_at("cart.py", &[(6, 6)]), names(&["Cart"]));
    assert_eq!(
        index.names_at("cart.py", &[(12, 12)]),
        names(&["Cart", "count"])
    );
}

#[test]
fn a_line_outside_of_everything_may_matter_to_everything() {
    let index = Project::new(FILES).index();
    let all = names(&["LIMIT", "rounded", "doubled"]);
    assert_eq!(index.names_at("prices.py", &[(2, 2)]), all);
    // An import beside a change adds nothing to it.
    assert_eq!(
        index.names_at("prices.py", &[(2, 2), (5, 5)]),
        names(&["rounded"])
    );
    assert!(index.names_at("nowhere.py", &[(1, 9)]).is_empty());
    assert_eq!(index.names_at("prices.py", &[(0, u32::MAX)]), all);
}

#[test]
fn users_of_users_are_found_and_the_nearest_come_first() {
    assert_eq!(users(&["rounded"], 1), [("cart.py".to_owned(), 1)]);
    assert_eq!(
        users(&["rounded"], 3),
        [
            ("cart.py".to_owned(), 1),
            ("tests/test_cart.py".to_owned(), 2)
        ]
    );
    assert_eq!(
        users(&["doubled"], 3),
        [("tests/test_doubled.py".to_owned(), 1)]
    );
    assert!(users(&[], 3).is_empty() && users(&["nobody"], 3).is_empty());
}
