//! Labels: checked codes and short names.

/// The check digit of a code: weights 3 and 1 from the right.
pub fn check_digit(digits: &str) -> Option<u32> {
    let mut sum = 0;
    for (index, c) in digits.chars().rev().enumerate() {
        let digit = c.to_digit(10)?;
        sum += if index % 2 == 0 { digit * 3 } else { digit };
    }
    Some((10 - sum % 10) % 10)
}

pub fn is_valid(code: &str) -> bool {
    if code.len() < 2 {
        return false;
    }
    let (body, last) = code.split_at(code.len() - 1);
    match (check_digit(body), last.parse::<u32>()) {
        (Some(wanted), Ok(found)) => wanted == found,
        _ => false,
    }
}

/// Cuts a name at a word so that it fits, with dots for what is left out.
pub fn shorten(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.to_string();
    }
    let mut out = String::new();
    for word in name.split_whitespace() {
        if out.len() + word.len() + 3 > width {
            break;
        }
        out.push_str(word);
        out.push(' ');
    }
    format!("{}...", out.trim_end())
}

pub fn shelf_name(aisle: u32, level: u32) -> String {
    let letter = char::from(b'A' + (aisle % 26) as u8);
    format!("{}{:02}", letter, level)
}
