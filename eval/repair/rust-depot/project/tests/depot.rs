use std::collections::HashSet;

use depot::label::{check_digit, is_valid, shelf_name, shorten};
use depot::order::{biggest, Order, State};
use depot::route::{distance, loads, steps, tour};
use depot::stock::{Stock, StockError};

fn stock() -> Stock {
    let mut stock = Stock::default();
    stock.receive("bolt", 100, 20);
    stock.receive("nut", 10, 10);
    stock
}

#[test]
fn reserving_leaves_less_free() {
    let mut stock = stock();
    assert_eq!(stock.reserve("bolt", 30), Ok(70));
    assert_eq!(stock.get("bolt").unwrap().free(), 70);
    assert_eq!(stock.reserve("nut", 11), Err(StockError::NotEnough { wanted: 11, free: 10 }));
    assert_eq!(stock.reserve("nut", 10), Ok(0));
    assert_eq!(stock.reserve("gear", 1), Err(StockError::Unknown("gear".into())));
}

#[test]
fn shipping_takes_from_shelf_and_reservation() {
    let mut stock = stock();
    stock.reserve("bolt", 30).unwrap();
    stock.ship("bolt", 30).unwrap();
    assert_eq!(stock.get("bolt").unwrap().count, 70);
    assert_eq!(stock.get("bolt").unwrap().free(), 70);
    assert!(stock.ship("bolt", 1).is_err());
}

#[test]
fn receiving_adds_up() {
    let mut stock = stock();
    stock.receive("bolt", 5, 20);
    assert_eq!(stock.total(), 115);
}

#[test]
fn low_articles_are_reordered() {
    let mut stock = stock();
    assert!(stock.reorder().is_empty());
    stock.reserve("nut", 4).unwrap();
    assert_eq!(stock.reorder(), [("nut".to_string(), 14)]);
}

fn order() -> Order {
    let mut order = Order::new(1);
    order.add("bolt", 10, 12).add("saw", 1, 1500);
    order
}

#[test]
fn totals_with_shipping() {
    assert_eq!(order().goods(), 1620);
    assert_eq!(order().total(), 2110);
    assert_eq!(Order::new(2).total(), 0);
}

#[test]
fn large_orders_ship_free() {
    let mut order = Order::new(1);
    order.add("drill", 1, 5000);
    assert_eq!(order.total(), 5000);
}

#[test]
fn gifts_are_wrapped_each() {
    let mut order = order();
    order.lines[0].gift = true;
    assert_eq!(order.wrapping(), 1500);
}

#[test]
fn discount_in_percent() {
    assert_eq!(order().discounted(10), 1899);
    assert_eq!(order().discounted(200), 0);
}

#[test]
fn orders_move_on() {
    let mut order = order();
    assert!(order.advance());
    assert_eq!(order.state, State::Packed);
    assert!(order.advance());
    assert_eq!(order.state, State::Sent);
    assert!(!order.advance());
    assert!(!order.cancel());
    assert!(!Order::new(3).advance());
}

#[test]
fn open_orders_can_be_cancelled_once() {
    let mut order = order();
    assert!(order.cancel());
    assert!(!order.cancel());
}

#[test]
fn biggest_first() {
    let orders: Vec<Order> = [(1, 100), (2, 300), (3, 200)]
        .into_iter()
        .map(|(id, cents)| {
            let mut order = Order::new(id);
            order.add("x", 1, cents);
            order
        })
        .collect();
    assert_eq!(biggest(&orders, 2), [2, 3]);
}

#[test]
fn ways_around_shelves() {
    let blocked: HashSet<_> = [(1, 0), (1, 1)].into();
    assert_eq!(steps(3, 3, &blocked, (0, 0), (2, 0)), Some(6));
    assert_eq!(steps(3, 2, &blocked, (0, 0), (2, 0)), None);
    assert_eq!(steps(3, 3, &blocked, (0, 0), (0, 0)), Some(0));
    let wall: HashSet<_> = [(0, 1), (1, 1)].into();
    assert_eq!(steps(2, 3, &wall, (0, 0), (0, 2)), None);
    assert_eq!(steps(4, 4, &HashSet::new(), (0, 0), (3, 0)), Some(3));
    assert_eq!(distance((1, 2), (-1, 5)), 5);
}

#[test]
fn nearest_stop_next() {
    let (way, length) = tour((0, 0), &[(5, 5), (1, 0), (1, 2)]);
    assert_eq!(way, [(1, 0), (1, 2), (5, 5)]);
    assert_eq!(length, 10);
}

#[test]
fn carts_are_not_overloaded() {
    assert_eq!(loads(&[3, 4, 3, 5], 10), [vec![3, 4, 3], vec![5]]);
    assert_eq!(loads(&[12, 1], 10), [vec![12], vec![1]]);
    assert_eq!(loads(&[6, 6, 3], 10), [vec![6], vec![6, 3]]);
    assert!(loads(&[], 10).is_empty());
}

#[test]
fn codes_are_checked() {
    assert_eq!(check_digit("400638133393"), Some(1));
    assert!(is_valid("4006381333931"));
    assert!(!is_valid("4006381333930"));
    assert!(!is_valid("7"));
    assert!(!is_valid("0"));
    assert_eq!(check_digit("0000"), Some(0));
    assert_eq!(check_digit("12a"), None);
}

#[test]
fn names_fit_the_label() {
    assert_eq!(shorten("hex bolt", 10), "hex bolt");
    assert_eq!(shorten("hexagonal bolt with washer", 18), "hexagonal bolt...");
    assert_eq!(shorten("round steel rod", 12), "round...");
    assert_eq!(shelf_name(2, 7), "C07");
}
