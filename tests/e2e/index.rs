//! `lula index`: the map of a project, and where things are defined.

use crate::support::{LulaEnv, listing};

fn shop() -> LulaEnv {
    let world = LulaEnv::new();
    let files = [
        (".gitignore", "generated/\n"),
        ("README.md", "# Shop\n"),
        (
            "shop/money.py",
            "class Money:\n    def add_amount(self, other):\n        return other\n\n\ndef parse_price(text):\n    return Money()\n",
        ),
        (
            "shop/cart.py",
            "from shop.money import Money, parse_price\n\n\nclass ShoppingCart:\n    def add_item(self, name):\n        return parse_price(name).add_amount(Money())\n\n    def apply_discount(self, percent):\n        return percent\n",
        ),
        (
            "web/cart.ts",
            "export function renderCart(id: string): string { return id; }\n",
        ),
        ("generated/noise.py", "def generated_noise():\n    pass\n"),
    ];
    for (path, text) in files {
        let path = world.work().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    world
}

#[test]
fn a_map_shows_signatures_file_by_file_and_changes_nothing() {
    let world = shop();
    let before = listing(&world.work());
    let ran = world.run(&["index", "map"]).exits(0);
    assert_eq!(
        ran.stdout,
        "\
README.md
shop/cart.py
  class ShoppingCart
    def add_item(self, name)
    def apply_discount(self, percent)
shop/money.py
  class Money
    def add_amount(self, other)
  def parse_price(text)
web/cart.ts
  function renderCart(id: string): string
"
    );
    assert_eq!(listing(&world.work()), before);
}

#[test]
fn a_map_keeps_to_its_budget_and_follows_the_task() {
    let world = shop();
    let run = |task: &str| {
        let arguments = ["index", "map", "--json", "--tokens", "35", "--task", task];
        world.run(&arguments).exits(0).json()
    };
    let discount = run("applying a discount twice");
    assert!(discount["tokens"].as_u64().unwrap() <= 35);
    let text = discount["text"].as_str().unwrap();
    assert!(text.contains("apply_discount"), "{text}");
    let price = run("prices are parsed wrongly");
    assert!(price["text"].as_str().unwrap().contains("parse_price"));
    assert_eq!(price["definitions"], 7);
}

#[test]
fn the_second_time_nothing_is_parsed_and_an_edit_is_seen() {
    let world = shop();
    let index = || world.run(&["index", "symbols", "--json"]).exits(0).json()["index"].clone();
    let first = index();
    assert_eq!(
        (&first["cache"], &first["parsed"]),
        (&"new".into(), &3.into())
    );
    let second = index();
    assert_eq!(
        (&second["cache"], &second["parsed"]),
        (&"kept".into(), &0.into())
    );
    std::fs::write(
        world.work().join("web/cart.ts"),
        "export function emptyCart(): void {}\n",
    )
    .unwrap();
    world
        .run(&["index", "symbols", "emptyCart"])
        .exits(0)
        .says("web/cart.ts:1");
    world.run(&["index", "symbols", "renderCart"]).exits(1);
}

#[test]
fn a_damaged_cache_is_made_anew() {
    let world = shop();
    world.run(&["index", "map"]).exits(0);
    let kept = world.home().join(".local/state/lula/index");
    let file = std::fs::read_dir(&kept)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let good = std::fs::read(&file).unwrap();
    std::fs::write(&file, &good[..good.len() / 2]).unwrap();
    let ran = world.run(&["index", "map", "--json"]).exits(0);
    assert_eq!(ran.json()["index"]["cache"], "unusable");
    assert_eq!(ran.json()["index"]["parsed"], 3);
    let ran = world.run(&["index", "map", "--json"]).exits(0);
    assert_eq!(ran.json()["index"]["cache"], "kept");
}

#[test]
fn symbols_are_found_by_name_and_by_words() {
    let world = shop();
    let found = world
        .run(&["index", "symbols", "--json", "discount"])
        .exits(0);
    let first = &found.json()["symbols"][0];
    assert_eq!(first["name"], "apply_discount");
    assert_eq!(first["path"], "shop/cart.py");
    assert_eq!(first["line"], 8);
    assert_eq!(first["kind"], "method");
    world
        .run(&["index", "symbols", "generated_noise"])
        .exits(1)
        .says("nothing answers");
}

#[test]
fn a_directory_that_holds_the_home_is_refused() {
    let world = shop();
    let home = world.home();
    world
        .run(&["index", "map", home.to_str().unwrap()])
        .exits(2)
        .says("home");
    world
        .run(&["index", "map", "no/such/place"])
        .exits(2)
        .says("no/such/place");
}
