//! What late books cost.

/// Who borrows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    Child,
    Adult,
    Staff,
}

/// Cents for each day that a book is late.
const PER_DAY: u32 = 25;
/// Days that nobody pays for.
const GRACE: u32 = 2;
/// Most that one book costs.
const MOST: u32 = 1000;

/// The fee for a book that comes back on `returned` and was due on `due`.
pub fn fee(member: Member, due: u32, returned: u32) -> u32 {
    if member == Member::Staff || returned <= due + GRACE {
        return 0;
    }
    let late = returned - due;
    let full = (late * PER_DAY).min(MOST);
    match member {
        Member::Child => full / 2,
        _ => full,
    }
}

/// Splits a fee into parts that add up to it, the larger ones first.
pub fn instalments(total: u32, parts: u32) -> Vec<u32> {
    if parts == 0 {
        return Vec::new();
    }
    let each = total / parts;
    let extra = total % parts;
    (0..parts)
        .map(|i| if i < extra { each + 1 } else { each })
        .collect()
}

/// Cents as people read them.
pub fn show(cents: u32) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
