//! What is on the map.

use lula_index::{MapQuery, estimate};

use crate::project::{Project, map, shop};

#[test]
fn a_map_shows_what_others_use_in_the_order_of_paths() {
    let map = shop().map("", 1_000);
    assert_eq!(
        map.text,
        "\
README.md
shop/cart.py
  class ShoppingCart
    def add_item(self, name)
    def apply_discount(self, percent: int = 10) -> Money
shop/legacy.py
  def old_thing_nobody_calls()
shop/money.py
  class Money
    def __init__(self, cents)
    def add_amount(self, other)
  def parse_price(text)
shop/stock.py
  class StockRoom
    def reserve_item(self, name, count)
tests/test_cart.py
  def test_total()
"
    );
    assert_eq!(map.definitions, 11);
    assert_eq!(map.tokens, estimate(&map.text));
}

#[test]
fn a_small_map_leaves_out_what_nobody_uses_and_says_so() {
    let map = shop().map("", 40);
    assert_eq!(
        map.text,
        "\
shop/money.py
  class Money
  ⋮
  def parse_price(text)
shop/stock.py
  class StockRoom
  ⋮
"
    );
}

#[test]
fn the_words_of_a_task_pull_the_map_towards_it() {
    let project = shop();
    let first = |task: &str| {
        let map = project.map(task, 45);
        map.files
            .iter()
            .flat_map(|file| &file.symbols)
            .map(|symbol| symbol.name.clone())
            .collect::<Vec<_>>()
    };
    assert!(first("the discounts are applied twice").contains(&"apply_discount".to_owned()));
    assert!(first("reserving items fails").contains(&"reserve_item".to_owned()));
    let legacy = first("remove old_thing_nobody_calls");
    assert!(legacy.contains(&"old_thing_nobody_calls".to_owned()));
    assert!(!first("").contains(&"old_thing_nobody_calls".to_owned()));
}

#[test]
fn a_file_named_in_the_task_is_on_the_map_even_without_symbols() {
    let map = shop().map("see notes/todo.txt", 1_000);
    assert!(map.text.contains("notes/todo.txt\n"), "{}", map.text);
    assert!(!shop().map("", 1_000).text.contains("notes/todo.txt"));
}

#[test]
fn a_file_the_reader_has_is_not_repeated_but_pulls() {
    let task = MapQuery {
        given: vec!["shop/cart.py".to_owned()],
        ..MapQuery::default()
    };
    let map = shop().index().map(&task, 30, &estimate);
    assert!(!map.text.contains("cart.py"), "{}", map.text);
    assert!(map.text.contains("StockRoom"), "{}", map.text);
}

#[test]
fn an_edit_inside_a_function_leaves_the_map_as_it_was() {
    let mut project = shop();
    let mut index = project.index();
    let before = map(&index, "", 60);
    project.write(
        "shop/legacy.py",
        b"\n\n# moved\ndef old_thing_nobody_calls():\n    return 2\n",
    );
    project.update(&mut index);
    assert_eq!(map(&index, "", 60).text, before.text);
}

#[test]
fn a_name_of_another_language_is_no_use() {
    let uses = "import x\nclass A:\n    def f(self):\n        return compute_the_total()\n";
    let project = Project::new([
        ("a.py", uses),
        ("b.py", uses),
        ("total.py", "def compute_the_total():\n    return 1\n"),
        ("total.js", "function compute_the_total() { return 1 }\n"),
    ]);
    let map = project.map("", 15);
    assert!(map.text.starts_with("total.py\n"), "{}", map.text);
}

#[test]
fn a_path_cannot_write_to_the_terminal() {
    let project = Project::new([("a\u{1b}[2J\n.py", "def f():\n    pass\n")]);
    assert_eq!(project.map("", 100).text, "a[2J.py\n  def f()\n");
}

#[test]
fn a_definition_is_looked_for_in_the_module_that_the_task_names() {
    let files: Vec<(String, String)> = ["first", "hunt", "lcs", "myers", "plain", "raw", "slow"]
        .iter()
        .map(|name| {
            let text = format!("def diff(old, new):\n    return {name:?}\n");
            (format!("algorithms/{name}.py"), text)
        })
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let map = Project::new(files).map("algorithms.lcs.diff() counts from the wrong end", 25);
    assert!(map.text.contains("lcs.py"), "{}", map.text);
}

#[test]
fn what_a_task_asks_for_is_no_name_of_code() {
    let project = Project::new([
        (
            "a.py",
            "class Basket:\n    def add(self, item):\n        pass\n",
        ),
        (
            "b.py",
            "class Ledger:\n    def add(self, entry):\n        pass\n",
        ),
        ("prices.py", "def parse_price(text):\n    return text\n"),
    ]);
    let map = project.map("Add a currency to prices", 12);
    assert!(map.text.contains("prices.py"), "{}", map.text);
    assert!(!map.text.contains("def add"), "{}", map.text);
}
