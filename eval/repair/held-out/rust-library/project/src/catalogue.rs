//! What the library has and where it stands.

/// One title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Title {
    pub name: String,
    pub author: String,
    pub year: i32,
    pub copies: usize,
}

impl Title {
    pub fn new(name: &str, author: &str, year: i32, copies: usize) -> Self {
        Self {
            name: name.to_string(),
            author: author.to_string(),
            year,
            copies,
        }
    }

    /// The name it is sorted by: articles go to the end.
    pub fn sort_name(&self) -> String {
        for article in ["The ", "A ", "An "] {
            if let Some(rest) = self.name.strip_prefix(article) {
                return format!("{}, {}", rest, article.trim_end());
            }
        }
        self.name.clone()
    }
}

/// Titles that match every word, in name or author.
pub fn search<'a>(titles: &'a [Title], query: &str) -> Vec<&'a Title> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut found: Vec<&Title> = titles
        .iter()
        .filter(|title| {
            let text = format!("{} {}", title.name, title.author).to_lowercase();
            !words.is_empty() && words.iter().all(|word| text.contains(word.as_str()))
        })
        .collect();
    found.sort_by_key(|title| title.sort_name());
    found
}

/// Copies by decade, oldest first.
pub fn decades(titles: &[Title]) -> Vec<(i32, usize)> {
    let mut found: Vec<(i32, usize)> = Vec::new();
    for title in titles {
        let decade = title.year.div_euclid(10) * 10;
        match found.iter_mut().find(|(known, _)| *known == decade) {
            Some((_, copies)) => *copies += title.copies,
            None => found.push((decade, title.copies)),
        }
    }
    found.sort();
    found
}

/// Puts titles on shelves in their order, each shelf as full as it can be.
pub fn shelve(titles: &[Title], width: usize) -> Vec<Vec<&str>> {
    let mut shelves = Vec::new();
    let mut shelf = Vec::new();
    let mut used = 0;
    for title in titles {
        if used + title.copies > width && !shelf.is_empty() {
            shelves.push(std::mem::take(&mut shelf));
            used = 0;
        }
        shelf.push(title.name.as_str());
        used += title.copies;
    }
    if !shelf.is_empty() {
        shelves.push(shelf);
    }
    shelves
}
