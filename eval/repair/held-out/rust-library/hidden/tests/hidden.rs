use library::catalogue::{decades, search, shelve, Title};
use library::fees::{fee, instalments, show, Member};
use library::isbn::{is_valid, to_thirteen};
use library::loans::{Desk, Refused};

#[test]
fn numbers_more() {
    for good in ["0 19 853453 1", "9783161484100", "097522980x", "978-1-4028-9462-6"] {
        assert!(is_valid(good), "{good}");
    }
    for bad in ["", "0198534532", "9783161484101", "09752298X0", "97831614841", "978316148410X", "a198534531", "1X23456700"] {
        assert!(!is_valid(bad), "{bad}");
    }
    assert_eq!(to_thirteen("0 19 853453 1").as_deref(), Some("9780198534532"));
    assert_eq!(to_thirteen("097522980X").as_deref(), Some("9780975229804"));
    assert_eq!(to_thirteen("080442957X").as_deref(), Some("9780804429573"));
    assert_eq!(to_thirteen("9783161484101"), None);
    assert_eq!(to_thirteen("3-598-21507-X").map(|n| n.len()), Some(13));
}

#[test]
fn check_digit_zero() {
    assert_eq!(to_thirteen("0-19-850100-5"), to_thirteen("0198501005"));
    let zero = to_thirteen("3-16-148410-X");
    assert_eq!(zero.as_deref(), Some("9783161484100"));
}

#[test]
fn fees_more() {
    assert_eq!(fee(Member::Adult, 10, 3), 0);
    assert_eq!(fee(Member::Child, 0, 3), 37);
    assert_eq!(fee(Member::Adult, 0, 39), 975);
    assert_eq!(fee(Member::Adult, 0, 40), 1000);
    assert_eq!(fee(Member::Adult, 0, 41), 1000);
    assert_eq!(fee(Member::Child, 5, 7), 0);
    assert_eq!(fee(Member::Staff, 0, 3), 0);
    assert_eq!(instalments(11, 4), [3, 3, 3, 2]);
    assert_eq!(instalments(2, 3), [1, 1, 0]);
    assert_eq!(instalments(0, 2), [0, 0]);
    assert_eq!(show(0), "0.00");
    assert_eq!(show(12345), "123.45");
    assert_eq!(show(100), "1.00");
}

#[test]
fn desk_more() {
    let mut desk = Desk::new();
    assert_eq!(desk.wait("x", "a"), 1);
    assert_eq!(desk.wait("y", "a"), 2);
    assert_eq!(desk.borrow("y", "a", 0), Err(Refused::Waiting));
    assert_eq!(desk.borrow("x", "a", 10), Ok(31));
    assert_eq!(desk.next("a"), Some("y"));
    assert_eq!(desk.renew("x", "a"), Err(Refused::Waiting));
    assert_eq!(desk.give_back("x", "a"), Ok(31));
    assert_eq!(desk.borrow("y", "a", 11), Ok(32));
    assert_eq!(desk.next("a"), None);
    assert_eq!(desk.wait("z", "b"), 1);
    for book in ["c", "d"] {
        desk.borrow("y", book, 0).unwrap();
    }
    assert_eq!(desk.count("y"), 3);
    assert_eq!(desk.borrow("y", "e", 0), Err(Refused::TooMany));
    desk.give_back("y", "d").unwrap();
    assert_eq!(desk.borrow("y", "e", 0), Ok(21));
    assert_eq!(desk.give_back("y", "nothing"), Err(Refused::NotYours));
    assert_eq!(desk.renew("x", "c"), Err(Refused::NotYours));
    assert_eq!(desk.renew("y", "nothing"), Err(Refused::NotYours));
    assert_eq!(desk.renew("y", "c"), Ok(42));
    let mut other = Desk::new();
    other.borrow("q", "book", 100).unwrap();
    assert_eq!(other.renew("q", "book"), Ok(142));
    assert_eq!(other.renew("q", "book"), Ok(163));
    assert_eq!(other.renew("q", "book"), Err(Refused::TooOften));
    assert_eq!(other.give_back("q", "book"), Ok(163));
    assert_eq!(desk.late(21), []);
    assert_eq!(desk.late(22), [("e", 1)]);
    assert_eq!(desk.late(43), [("e", 22), ("a", 11), ("c", 1)]);
}

#[test]
fn late_ties_are_by_name() {
    let mut desk = Desk::new();
    for book in ["b", "a", "c"] {
        desk.borrow(book, book, 0).unwrap();
    }
    assert_eq!(desk.late(22), [("a", 1), ("b", 1), ("c", 1)]);
}

#[test]
fn catalogue_more() {
    let titles = [
        Title::new("A Room", "V Woolf", 1929, 2),
        Title::new("An Ideal", "O Wilde", 1895, 4),
        Title::new("Theory", "X Room", 1920, 1),
        Title::new("The Waves", "V Woolf", 1931, 2),
        Title::new("Odes", "Horace", -23, 1),
    ];
    assert_eq!(titles[0].sort_name(), "Room, A");
    assert_eq!(titles[1].sort_name(), "Ideal, An");
    assert_eq!(titles[2].sort_name(), "Theory");
    let names = |query: &str| -> Vec<&str> {
        search(&titles, query).iter().map(|title| title.name.as_str()).collect()
    };
    assert_eq!(names("ROOM"), ["A Room", "Theory"]);
    assert_eq!(names("woolf"), ["A Room", "The Waves"]);
    assert_eq!(names("woolf waves"), ["The Waves"]);
    assert_eq!(names("woolf wilde"), [""; 0]);
    assert_eq!(names(""), [""; 0]);
    assert_eq!(
        decades(&titles),
        [(-30, 1), (1890, 4), (1920, 3), (1930, 2)]
    );
    assert_eq!(
        shelve(&titles, 6),
        [vec!["A Room", "An Ideal"], vec!["Theory", "The Waves", "Odes"]]
    );
    assert_eq!(
        shelve(&titles, 3),
        [
            vec!["A Room"],
            vec!["An Ideal"],
            vec!["Theory", "The Waves"],
            vec!["Odes"]
        ]
    );
}
