//! Book numbers.

/// Digits of a book number, dashes and spaces left out; an `X` at the end is ten.
fn digits(text: &str) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for c in text.chars() {
        match c {
            '-' | ' ' => continue,
            'X' | 'x' if found.len() == 9 => found.push(10),
            _ => found.push(c.to_digit(10)?),
        }
    }
    Some(found)
}

/// Whether it is a book number of ten or thirteen digits with the right check digit.
pub fn is_valid(text: &str) -> bool {
    let Some(digits) = digits(text) else {
        return false;
    };
    match digits.len() {
        10 => {
            let sum: u32 = digits.iter().enumerate().map(|(i, d)| (10 - i as u32) * d).sum();
            sum % 11 == 0
        }
        13 => {
            let sum: u32 = digits
                .iter()
                .enumerate()
                .map(|(i, d)| if i % 2 == 0 { *d } else { d * 3 })
                .sum();
            sum % 10 == 0
        }
        _ => false,
    }
}

/// The thirteen digits of a ten-digit number.
pub fn to_thirteen(text: &str) -> Option<String> {
    if !is_valid(text) {
        return None;
    }
    let digits = digits(text)?;
    if digits.len() == 13 {
        return Some(digits.iter().map(|d| d.to_string()).collect());
    }
    let mut long = vec![9, 7, 8];
    long.extend(&digits[..9]);
    let sum: u32 = long
        .iter()
        .enumerate()
        .map(|(i, d)| if i % 2 == 0 { *d } else { d * 3 })
        .sum();
    long.push((10 - sum % 10) % 10);
    Some(long.iter().map(|d| d.to_string()).collect())
}
