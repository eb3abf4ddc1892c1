//! Addresses that stand for names. Pure.
//!
//! Each name that a sandbox may reach gets an address of its own out of 198.18.0.0/15, which is reserved
//! and routed nowhere. So a connection says which name was meant, whatever is spoken on it; two names never
//! share an address, as they do at large hosts; and the sandbox learns nothing of the networks outside.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use crate::DomainName;

/// The first address handed out, and how many there are.
const FIRST: u32 = u32::from_be_bytes([198, 18, 0, 16]);
const SPAN: u32 = (1 << 17) - 32;
/// Most names that are remembered at once.
const MOST: usize = 8192;
/// A name that was not used for so long may be forgotten for another one.
const FORGETTABLE: Duration = Duration::from_mins(10);

/// Names and their addresses, both ways.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    names: HashMap<DomainName, Pin>,
    addresses: HashMap<Ipv4Addr, DomainName>,
    next: u32,
}

#[derive(Debug)]
struct Pin {
    address: Ipv4Addr,
    used: Instant,
}

impl Pins {
    /// The address of a name, a new one if it had none; `None` if too many names are in use.
    pub(crate) fn pin(&mut self, name: &DomainName, now: Instant) -> Option<Ipv4Addr> {
        if let Some(pin) = self.names.get_mut(name) {
            pin.used = now;
            return Some(pin.address);
        }
        if self.names.len() >= MOST {
            self.forget_oldest(now)?;
        }
        // Fewer names are remembered than there are addresses, so this ends.
        let address = loop {
            let address = Ipv4Addr::from_bits(FIRST + self.next);
            self.next = (self.next + 1) % SPAN;
            if !self.addresses.contains_key(&address) {
                break address;
            }
        };
        self.addresses.insert(address, name.clone());
        self.names.insert(name.clone(), Pin { address, used: now });
        Some(address)
    }

    /// The name that an address stands for.
    pub(crate) fn name_of(&mut self, address: IpAddr, now: Instant) -> Option<DomainName> {
        let IpAddr::V4(address) = address.to_canonical() else {
            return None;
        };
        let name = self.addresses.get(&address)?.clone();
        if let Some(pin) = self.names.get_mut(&name) {
            pin.used = now;
        }
        Some(name)
    }

    fn forget_oldest(&mut self, now: Instant) -> Option<()> {
        let oldest = self.names.iter().min_by_key(|(_, pin)| pin.used)?;
        if now.duration_since(oldest.1.used) < FORGETTABLE {
            return None;
        }
        let name = oldest.0.clone();
        let pin = self.names.remove(&name)?;
        self.addresses.remove(&pin.address);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(index: usize) -> DomainName {
        format!("n{index}.example.org").parse().unwrap()
    }

    #[test]
    fn a_name_keeps_its_address_and_an_address_its_name() {
        let mut pins = Pins::default();
        let now = Instant::now();
        let first = pins.pin(&name(1), now).unwrap();
        let second = pins.pin(&name(2), now).unwrap();
        assert_ne!(first, second);
        assert_eq!(pins.pin(&name(1), now), Some(first));
        assert_eq!(pins.name_of(first.into(), now), Some(name(1)));
        assert_eq!(
            pins.name_of(IpAddr::V6(second.to_ipv6_mapped()), now),
            Some(name(2))
        );
        assert_eq!(pins.name_of("198.18.0.1".parse().unwrap(), now), None);
        assert_eq!(pins.name_of("8.8.8.8".parse().unwrap(), now), None);
    }

    #[test]
    fn a_name_in_use_is_not_forgotten_for_a_new_one() {
        let mut pins = Pins::default();
        let start = Instant::now();
        for index in 0..MOST {
            assert!(pins.pin(&name(index), start).is_some());
        }
        assert_eq!(pins.pin(&name(MOST), start), None);
        let later = start + FORGETTABLE;
        for index in 1..MOST {
            pins.pin(&name(index), later);
        }
        let address = pins.pin(&name(MOST), later).unwrap();
        assert_eq!(pins.name_of(address.into(), later), Some(name(MOST)));
        assert_eq!(pins.names.len(), MOST);
    }

    #[test]
    fn addresses_come_from_the_range_that_is_routed_nowhere() {
        let mut pins = Pins {
            next: SPAN - 1,
            ..Pins::default()
        };
        for index in 0..3 {
            let [a, b, ..] = pins.pin(&name(index), Instant::now()).unwrap().octets();
            assert_eq!((a, b & 0xfe), (198, 18));
        }
    }
}
