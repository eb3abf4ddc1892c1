//! How often the kernel found no way to an address: its own count of what a private network kept in.

use crate::page;

/// How often that was in this process's network, since it was made. The page about IPv6 is long and
/// takes its time: it is read only where it is worth that.
pub(super) fn missed(both: bool) -> Option<u64> {
    let four = in_page(&page::read("/proc/self/net/snmp").ok()?)?;
    let six = both
        .then(|| page::read("/proc/self/net/snmp6").ok())
        .flatten()
        .and_then(|page| in_page6(&page));
    Some(four + six.unwrap_or(0))
}

const NAME: &str = "OutNoRoutes";

/// In `/proc/net/snmp`: a line of names and a line of numbers.
pub(crate) fn in_page(page: &str) -> Option<u64> {
    let mut lines = page.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut pairs = names.split(' ').zip(numbers.split(' '));
    pairs.find(|(name, _)| *name == NAME)?.1.parse().ok()
}

/// In `/proc/net/snmp6`: a name and a number in each line.
pub(crate) fn in_page6(page: &str) -> Option<u64> {
    let mut lines = page.lines().filter_map(|line| line.strip_prefix("Ip6"));
    let number = lines.find_map(|line| line.strip_prefix(NAME))?;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_both_pages() {
        let page =
            "Ip: Forwarding OutNoRoutes ReasmTimeout\nIp: 2 7 0\nIcmp: OutNoRoutes\nIcmp: 3\n";
        assert_eq!(in_page(page), Some(7));
        assert_eq!(in_page("Ip: Forwarding\nIp: 2\n"), None);
        assert_eq!(in_page(""), None);
        let page = "Ip6InNoRoutes                   \t1\nIp6OutNoRoutes                  \t12\n";
        assert_eq!(in_page6(page), Some(12));
        assert_eq!(in_page6("Ip6InNoRoutes \t1\n"), None);
    }
}
