use std::collections::HashSet;

use depot::label::*;
use depot::order::*;
use depot::route::*;
use depot::stock::*;

#[test]
fn stock_holds() {
    let mut stock = Stock::default();
    stock.receive("a", 7, 3);
    stock.receive("a", 2, 4);
    assert_eq!(stock.get("a").unwrap().count, 9);
    assert_eq!(stock.get("a").unwrap().minimum, 4);
    assert_eq!(stock.reserve("a", 5), Ok(4));
    assert!(!stock.get("a").unwrap().is_low());
    assert!(stock.reorder().is_empty());
    assert_eq!(stock.reserve("a", 1), Ok(3));
    assert_eq!(stock.reorder(), [("a".to_string(), 5)]);
    assert_eq!(stock.reserve("a", 4), Err(StockError::NotEnough { wanted: 4, free: 3 }));
    assert_eq!(stock.ship("a", 7), Err(StockError::NotEnough { wanted: 7, free: 6 }));
    assert_eq!(stock.ship("a", 6), Ok(()));
    assert_eq!((stock.get("a").unwrap().count, stock.get("a").unwrap().reserved), (3, 0));
    assert_eq!(stock.ship("b", 1), Err(StockError::Unknown("b".into())));
    stock.receive("b", 40, 1);
    assert_eq!(stock.total(), 43);
    let over = Item { sku: "x".into(), count: 1, reserved: 3, minimum: 0 };
    assert_eq!(over.free(), 0);
}

#[test]
fn orders_hold() {
    let mut order = Order::new(9);
    order.add("a", 2, 100).add("b", 3, 1000);
    assert_eq!(order.goods(), 3200);
    assert_eq!(order.shipping(), SHIPPING);
    order.lines[1].gift = true;
    assert_eq!(order.wrapping(), 450);
    order.lines[0].gift = true;
    assert_eq!(order.wrapping(), 750);
    assert_eq!(order.total(), 3200 + 750 + 490);
    assert_eq!(order.discounted(0), 4440);
    assert_eq!(order.discounted(33), 4440 - 1465);
    assert_eq!(order.discounted(100), 0);
    assert_eq!(order.discounted(101), 0);
    order.add("c", 1, 1799);
    assert_eq!(order.shipping(), SHIPPING);
    order.add("d", 1, 1);
    assert_eq!(order.shipping(), 0);
    let mut empty = Order::new(1);
    assert!(!empty.advance());
    assert_eq!(empty.state, State::Open);
    assert!(empty.cancel());
    assert!(!empty.advance());
    order.advance();
    assert!(order.cancel());
    assert_eq!(order.state, State::Cancelled);
}

#[test]
fn biggest_hold() {
    let make = |id, cents| {
        let mut order = Order::new(id);
        order.add("x", 1, cents);
        order
    };
    let orders = [make(4, 100), make(3, 900), make(2, 100), make(1, 500)];
    assert_eq!(biggest(&orders, 3), [3, 1, 2]);
    assert_eq!(biggest(&orders, 9), [3, 1, 2, 4]);
    assert!(biggest(&orders, 0).is_empty());
}

#[test]
fn routes_hold() {
    assert_eq!(distance((-3, -4), (3, 4)), 14);
    assert_eq!(steps(5, 1, &HashSet::new(), (4, 0), (0, 0)), Some(4));
    assert_eq!(steps(1, 5, &HashSet::new(), (0, 0), (0, 4)), Some(4));
    assert_eq!(steps(5, 5, &HashSet::from([(2, 0), (2, 1), (2, 2), (2, 3)]), (0, 0), (4, 0)), Some(12));
    assert_eq!(steps(2, 2, &HashSet::from([(1, 0), (0, 1)]), (0, 0), (1, 1)), None);
    let (way, length) = tour((10, 10), &[(0, 0), (9, 9), (10, 12)]);
    assert_eq!((way, length), (vec![(9, 9), (10, 12), (0, 0)], 2 + 4 + 22));
    assert_eq!(tour((1, 1), &[]), (vec![], 0));
    assert_eq!(loads(&[5, 5, 1, 9, 2], 10), [vec![5, 5], vec![1, 9], vec![2]]);
    assert_eq!(loads(&[11, 12], 10), [vec![11], vec![12]]);
    assert_eq!(loads(&[10], 10), [vec![10]]);
    assert_eq!(loads(&[9, 2, 2, 2], 10), [vec![9], vec![2, 2, 2]]);
}

#[test]
fn labels_hold() {
    assert_eq!(check_digit("629104150021"), Some(3));
    assert_eq!(check_digit("0"), Some(0));
    assert_eq!(check_digit("1"), Some(7));
    assert_eq!(check_digit(""), Some(0));
    assert!(is_valid("17") && !is_valid("71") && !is_valid("") && !is_valid("1x") && !is_valid("0"));
    assert_eq!(shorten("ab cd ef", 8), "ab cd ef");
    assert_eq!(shorten("ab cd ef gh", 8), "ab cd...");
    assert_eq!(shorten("abcdefghijk", 5), "...");
    assert_eq!((shelf_name(0, 0), shelf_name(25, 12), shelf_name(26, 100)), ("A00".into(), "Z12".into(), "A100".into()));
}
