//! Looking definitions up.

use crate::project::shop;

#[test]
fn the_closest_name_comes_first() {
    let index = shop().index();
    let names = |query: &str| {
        index
            .find(query, 10)
            .into_iter()
            .map(|found| format!("{}:{} {}", found.path, found.line, found.name))
            .collect::<Vec<_>>()
    };
    assert_eq!(names("Money"), ["shop/money.py:1 Money"]);
    assert_eq!(names("shoppingcart"), ["shop/cart.py:4 ShoppingCart"]);
    assert_eq!(
        names("add"),
        ["shop/cart.py:5 add_item", "shop/money.py:5 add_amount"]
    );
    assert_eq!(names("discounts apply"), ["shop/cart.py:9 apply_discount"]);
    assert_eq!(names("ice"), ["shop/money.py:9 parse_price"]);
    assert!(names("nothing_like_it").is_empty());
    assert_eq!(names("").len(), 10);
    assert_eq!(index.find("", 3).len(), 3);
}
