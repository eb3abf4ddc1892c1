//! Who has what until when, and who waits for it.

use std::collections::{BTreeMap, VecDeque};

/// Days of a loan.
const DAYS: u32 = 21;
/// How often a loan can be prolonged.
const RENEWALS: u32 = 2;
/// Most books that one person has.
const MOST: usize = 3;

/// Why something is not possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    Taken,
    TooMany,
    NotYours,
    Waiting,
    TooOften,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loan {
    pub who: String,
    pub due: u32,
    pub renewed: u32,
}

/// All loans.
#[derive(Debug, Default)]
pub struct Desk {
    loans: BTreeMap<String, Loan>,
    queues: BTreeMap<String, VecDeque<String>>,
}

impl Desk {
    pub fn new() -> Self {
        Self::default()
    }

    /// How many books somebody has.
    pub fn count(&self, who: &str) -> usize {
        self.loans.values().filter(|loan| loan.who == who).count()
    }

    /// Who is next in line for a book.
    pub fn next(&self, book: &str) -> Option<&str> {
        self.queues
            .get(book)
            .and_then(|queue| queue.front())
            .map(String::as_str)
    }

    pub fn borrow(&mut self, who: &str, book: &str, today: u32) -> Result<u32, Refused> {
        if self.loans.contains_key(book) {
            return Err(Refused::Taken);
        }
        if self.next(book).is_some_and(|first| first != who) {
            return Err(Refused::Waiting);
        }
        if self.count(who) >= MOST {
            return Err(Refused::TooMany);
        }
        if let Some(queue) = self.queues.get_mut(book) {
            queue.pop_front();
        }
        let due = today + DAYS;
        self.loans.insert(
            book.to_string(),
            Loan {
                who: who.to_string(),
                due,
                renewed: 0,
            },
        );
        Ok(due)
    }

    pub fn give_back(&mut self, who: &str, book: &str) -> Result<u32, Refused> {
        match self.loans.get(book) {
            Some(loan) if loan.who == who => {
                let due = loan.due;
                self.loans.remove(book);
                Ok(due)
            }
            _ => Err(Refused::NotYours),
        }
    }

    /// Waits for a book; a second call changes nothing. The place in line comes back.
    pub fn wait(&mut self, who: &str, book: &str) -> usize {
        let queue = self.queues.entry(book.to_string()).or_default();
        if let Some(place) = queue.iter().position(|name| name == who) {
            return place + 1;
        }
        queue.push_back(who.to_string());
        queue.len()
    }

    pub fn renew(&mut self, who: &str, book: &str) -> Result<u32, Refused> {
        if self.next(book).is_some() {
            return Err(Refused::Waiting);
        }
        let loan = self.loans.get_mut(book).ok_or(Refused::NotYours)?;
        if loan.who != who {
            return Err(Refused::NotYours);
        }
        if loan.renewed >= RENEWALS {
            return Err(Refused::TooOften);
        }
        loan.renewed += 1;
        loan.due += DAYS;
        Ok(loan.due)
    }

    /// Books that are late on a day, the latest first.
    pub fn late(&self, today: u32) -> Vec<(&str, u32)> {
        let mut found: Vec<(&str, u32)> = self
            .loans
            .iter()
            .filter(|(_, loan)| loan.due < today)
            .map(|(book, loan)| (book.as_str(), today - loan.due))
            .collect();
        found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        found
    }
}
