//! "Did you mean": the nearest known name.

/// The closest of the names, if one is close enough to be a slip.
pub(crate) fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last_part = |name: &'a str| name.rsplit('.').next().unwrap_or(name);
    names
        .map(|name| {
            let whole = strsim::jaro_winkler(given, name);
            // `min_tier` alone means `sandbox.min_tier`.
            let part = strsim::jaro_winkler(given, last_part(name)) - 0.05;
            (name, whole.max(part))
        })
        .filter(|(_, score)| *score > 0.8)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_key_and_nonsense_finds_none() {
        let names = ["sandbox.min_tier", "sandbox.timeout", "output.color"];
        let near = |given| nearest(given, names.into_iter());
        assert_eq!(near("sandbox.min_teir"), Some("sandbox.min_tier"));
        assert_eq!(near("output.colour"), Some("output.color"));
        assert_eq!(near("min_tier"), Some("sandbox.min_tier"));
        assert_eq!(near("zzz"), None);
    }
}
