//! A project in memory that counts how often it is read.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use lula_index::{
    FileFingerprint, IndexUpdate, IndexedFile, MapQuery, ProjectMap, SymbolIndex, estimate,
};

#[derive(Default)]
pub(crate) struct Project {
    files: BTreeMap<String, (Vec<u8>, i128)>,
    clock: i128,
    pub(crate) read: Mutex<Vec<String>>,
}

impl Project {
    pub(crate) fn new<P: AsRef<str>, B: AsRef<[u8]>>(
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Self {
        let mut project = Self::default();
        for (path, bytes) in files {
            project.write(path.as_ref(), bytes.as_ref());
        }
        project
    }

    pub(crate) fn write(&mut self, path: &str, bytes: &[u8]) {
        self.clock += 1;
        self.files
            .insert(path.to_owned(), (bytes.to_owned(), self.clock));
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    pub(crate) fn listing(&self) -> Vec<IndexedFile> {
        let listed = self.files.iter().map(|(path, (bytes, time))| IndexedFile {
            path: path.clone(),
            size: bytes.len() as u64,
            fingerprint: Some(FileFingerprint {
                modified: *time,
                changed: *time,
                inode: 1,
            }),
        });
        listed.collect()
    }

    pub(crate) fn update(&self, index: &mut SymbolIndex) -> IndexUpdate {
        self.update_with(index, self.listing())
    }

    pub(crate) fn update_with(
        &self,
        index: &mut SymbolIndex,
        listing: Vec<IndexedFile>,
    ) -> IndexUpdate {
        self.read.lock().unwrap().clear();
        index.update(listing, &|path| {
            self.read.lock().unwrap().push(path.to_owned());
            match self.files.get(path) {
                Some((bytes, _)) => Ok(bytes.clone()),
                None => Err(io::ErrorKind::NotFound.into()),
            }
        })
    }

    pub(crate) fn index(&self) -> SymbolIndex {
        let mut index = SymbolIndex::default();
        self.update(&mut index);
        index
    }

    pub(crate) fn map(&self, task: &str, budget: u64) -> ProjectMap {
        map(&self.index(), task, budget)
    }
}

pub(crate) fn map(index: &SymbolIndex, task: &str, budget: u64) -> ProjectMap {
    let task = MapQuery {
        text: task.to_owned(),
        ..MapQuery::default()
    };
    index.map(&task, budget, &estimate)
}

/// A small shop: everything uses `money`, `cart` uses `stock`, nothing uses `legacy`.
pub(crate) fn shop() -> Project {
    Project::new([
        (
            "shop/money.py",
            "class Money:\n    def __init__(self, cents):\n        self.cents = cents\n\n    def add_amount(self, other):\n        return Money(self.cents + other.cents)\n\n\ndef parse_price(text):\n    return Money(int(text))\n",
        ),
        (
            "shop/stock.py",
            "from shop.money import Money, parse_price\n\nclass StockRoom:\n    def reserve_item(self, name, count):\n        return parse_price('1')\n",
        ),
        (
            "shop/cart.py",
            "from shop.money import Money, parse_price\nfrom shop.stock import StockRoom\n\nclass ShoppingCart:\n    def add_item(self, name):\n        StockRoom().reserve_item(name, 1)\n        self.total = self.total.add_amount(parse_price(name))\n\n    def apply_discount(self, percent: int = 10) -> Money:\n        return Money(percent)\n",
        ),
        (
            "shop/legacy.py",
            "def old_thing_nobody_calls():\n    return 1\n",
        ),
        (
            "tests/test_cart.py",
            "from shop.cart import ShoppingCart\n\ndef test_total():\n    ShoppingCart().add_item('x')\n",
        ),
        ("README.md", "# Shop\n"),
        ("notes/todo.txt", "later\n"),
    ])
}
