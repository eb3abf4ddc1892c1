use library::catalogue::{decades, search, shelve, Title};
use library::fees::{fee, instalments, show, Member};
use library::isbn::{is_valid, to_thirteen};
use library::loans::{Desk, Refused};

fn titles() -> Vec<Title> {
    vec![
        Title::new("The Sea", "John Banville", 2005, 2),
        Title::new("Emma", "Jane Austen", 1815, 3),
        Title::new("Dubliners", "James Joyce", 1914, 1),
        Title::new("Persuasion", "Jane Austen", 1817, 1),
    ]
}

#[test]
fn numbers_of_ten_digits() {
    assert!(is_valid("0-306-40615-2"));
    assert!(is_valid("080442957X"));
    assert!(!is_valid("0-306-40615-3"));
    assert!(!is_valid("X306406152"));
    assert!(!is_valid("03X4061503"));
}

#[test]
fn numbers_of_thirteen_digits() {
    assert!(is_valid("978-0-306-40615-7"));
    assert!(!is_valid("978-0-306-40615-8"));
    assert!(!is_valid("978"));
}

#[test]
fn short_numbers_become_long() {
    assert_eq!(to_thirteen("0-306-40615-2").as_deref(), Some("9780306406157"));
    assert_eq!(to_thirteen("978-0-306-40615-7").as_deref(), Some("9780306406157"));
    assert_eq!(to_thirteen("123"), None);
}

#[test]
fn late_books_cost_by_the_day() {
    assert_eq!(fee(Member::Adult, 10, 10), 0);
    assert_eq!(fee(Member::Adult, 10, 12), 0);
    assert_eq!(fee(Member::Adult, 10, 13), 75);
    assert_eq!(fee(Member::Adult, 10, 90), 1000);
}

#[test]
fn children_pay_half_and_staff_nothing() {
    assert_eq!(fee(Member::Child, 10, 90), 500);
    assert_eq!(fee(Member::Staff, 10, 90), 0);
}

#[test]
fn instalments_add_up() {
    assert_eq!(instalments(10, 3), [4, 3, 3]);
    assert_eq!(instalments(9, 3), [3, 3, 3]);
    assert!(instalments(9, 0).is_empty());
}

#[test]
fn fees_are_shown_with_two_digits() {
    assert_eq!(show(1005), "10.05");
    assert_eq!(show(75), "0.75");
}

#[test]
fn a_book_is_lent_once() {
    let mut desk = Desk::new();
    assert_eq!(desk.borrow("ann", "emma", 5), Ok(26));
    assert_eq!(desk.borrow("bob", "emma", 6), Err(Refused::Taken));
    assert_eq!(desk.give_back("bob", "emma"), Err(Refused::NotYours));
    assert_eq!(desk.give_back("ann", "emma"), Ok(26));
    assert_eq!(desk.borrow("bob", "emma", 7), Ok(28));
}

#[test]
fn nobody_has_more_than_three() {
    let mut desk = Desk::new();
    for book in ["a", "b", "c"] {
        desk.borrow("ann", book, 0).unwrap();
    }
    assert_eq!(desk.borrow("ann", "d", 0), Err(Refused::TooMany));
    assert_eq!(desk.borrow("bob", "d", 0), Ok(21));
}

#[test]
fn who_waits_comes_first_and_then_leaves_the_line() {
    let mut desk = Desk::new();
    desk.borrow("ann", "emma", 0).unwrap();
    assert_eq!(desk.wait("bob", "emma"), 1);
    assert_eq!(desk.wait("eve", "emma"), 2);
    assert_eq!(desk.wait("bob", "emma"), 1);
    desk.give_back("ann", "emma").unwrap();
    assert_eq!(desk.borrow("eve", "emma", 1), Err(Refused::Waiting));
    assert!(desk.borrow("bob", "emma", 1).is_ok());
    assert_eq!(desk.next("emma"), Some("eve"));
}

#[test]
fn loans_are_renewed_twice() {
    let mut desk = Desk::new();
    desk.borrow("ann", "emma", 0).unwrap();
    assert_eq!(desk.renew("bob", "emma"), Err(Refused::NotYours));
    assert_eq!(desk.renew("ann", "emma"), Ok(42));
    assert_eq!(desk.renew("ann", "emma"), Ok(63));
    assert_eq!(desk.renew("ann", "emma"), Err(Refused::TooOften));
}

#[test]
fn late_loans_are_listed() {
    let mut desk = Desk::new();
    desk.borrow("ann", "emma", 0).unwrap();
    desk.borrow("bob", "dubliners", 4).unwrap();
    desk.borrow("bob", "the sea", 9).unwrap();
    assert_eq!(desk.late(30), [("emma", 9), ("dubliners", 5)]);
}

#[test]
fn articles_do_not_sort() {
    assert_eq!(titles()[0].sort_name(), "Sea, The");
    assert_eq!(titles()[1].sort_name(), "Emma");
}

#[test]
fn a_search_needs_every_word() {
    let all = titles();
    let names = |query: &str| -> Vec<String> {
        search(&all, query).iter().map(|title| title.name.clone()).collect()
    };
    assert_eq!(names("austen jane"), ["Emma", "Persuasion"]);
    assert_eq!(names("jane emma"), ["Emma"]);
    assert!(names("  ").is_empty());
}

#[test]
fn copies_by_decade() {
    assert_eq!(decades(&titles()), [(1810, 4), (1910, 1), (2000, 2)]);
}

#[test]
fn shelves_are_filled_in_order() {
    assert_eq!(
        shelve(&titles(), 4),
        [vec!["The Sea"], vec!["Emma", "Dubliners"], vec!["Persuasion"]]
    );
    assert_eq!(shelve(&titles()[1..2], 2), [vec!["Emma"]]);
    assert!(shelve(&[], 4).is_empty());
}
