//! Which addresses a name may lead to. Pure.
//!
//! A name belongs to the server that answers for it, so an allowed name can be made to lead into the operator's own
//! network. Addresses are judged after each resolution, in every form an IPv4 address can hide in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is, as far as a rule can speak of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressKind {
    /// Of the network that everyone shares.
    Public,
    /// Of this machine or a private network: allowed where a rule says `private_addresses`.
    Private,
    /// Link-local (so every metadata service), multicast, broadcast, unspecified, reserved: never allowed.
    Never,
}

impl AddressKind {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    pub(crate) fn is_allowed(self, private: bool) -> bool {
        match self {
            Self::Public => true,
            Self::Private => private,
            Self::Never => false,
        }
    }
}

/// Metadata services beside the link-local ones: Alibaba's, within the carrier-grade range, and Azure's wire
/// server, a public address.
const METADATA_V4: [Ipv4Addr; 2] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// Metadata services on unique local addresses: AWS's and Oracle's, Google's, Scaleway's.
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
];

fn of_v4(address: Ipv4Addr) -> AddressKind {
    if METADATA_V4.contains(&address) {
        return AddressKind::Never;
    }
    match address.octets() {
        [10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => {
            AddressKind::Private
        }
        // Documentation: no network of the internet, and taken for mirrors by machines that have none.
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressKind::Private,
        // 0/8, multicast and up; link-local; protocol assignments and 6to4 relays; benchmarking.
        [0 | 224.., ..]
        | [169, 254, ..]
        | [192, 0, 0, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..] => AddressKind::Never,
        _ => AddressKind::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressKind {
    if METADATA_V6.contains(&address) {
        return AddressKind::Never;
    }
    if address == Ipv6Addr::LOCALHOST {
        return AddressKind::Private;
    }
    if let Some(inner) = embedded(address) {
        // Another spelling of an IPv4 address: never public, so that a rule for the public network does
        // not become one for a translator.
        return match of_v4(inner) {
            AddressKind::Never => AddressKind::Never,
            AddressKind::Public | AddressKind::Private => AddressKind::Private,
        };
    }
    match address.segments() {
        [0xfc00..=0xfdff, ..] => AddressKind::Private,
        // Of 2000::/3: Teredo and protocol assignments, documentation. Outside it nothing is assigned.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressKind::Never,
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Never,
    }
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible, translated (RFC 2765), NAT64 with
/// the well-known and the local prefix, 6to4, and interface identifiers of ISATAP.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let ([0, 0, 0, 0, 0, 0 | 0xffff, high, low]
    | [0, 0, 0, 0, 0xffff, 0, high, low]
    | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
    | [0x64, 0xff9b, 1, _, _, _, high, low]
    | [0x2002, high, low, ..]
    | [_, _, _, _, 0 | 0x200, 0x5efe, high, low]) = address.segments()
    else {
        return None;
    };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> AddressKind {
        AddressKind::of(text.parse().unwrap())
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for public in [
            "1.1.1.1",
            "151.101.0.223",
            "2606:4700::1111",
            "2a04:4e42::223",
        ] {
            assert_eq!(kind(public), AddressKind::Public, "{public}");
        }
    }

    #[test]
    fn addresses_of_a_private_network_need_a_rule_that_says_so() {
        for private in [
            "127.0.0.1",
            "127.9.9.9",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "192.0.2.1",
            "203.0.113.80",
            "::1",
            "fd12:3456::1",
            "fc00::1",
        ] {
            assert_eq!(kind(private), AddressKind::Private, "{private}");
        }
    }

    #[test]
    fn metadata_link_local_and_multicast_are_never_allowed() {
        for never in [
            "169.254.169.254",
            "169.254.170.2",
            "fd00:ec2::254",
            "fd20:ce::254",
            "100.100.100.200",
            "168.63.129.16",
            "fe80::1",
            "224.0.0.1",
            "239.1.1.1",
            "ff02::1",
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "::",
            "198.18.0.1",
            "240.0.0.1",
            "2001:db8::1",
            "2001::1",
            "fec0::1",
        ] {
            assert_eq!(kind(never), AddressKind::Never, "{never}");
            assert!(!kind(never).is_allowed(true), "{never}");
        }
    }

    #[test]
    fn an_ipv4_address_is_found_in_every_form_it_hides_in() {
        for form in [
            "::ffff:127.0.0.1",
            "::127.0.0.2",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2001:470::5efe:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::8.8.8.8",
        ] {
            assert_eq!(kind(form), AddressKind::Private, "{form}");
        }
        for form in [
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "::ffff:224.0.0.1",
            "::ffff:0.0.0.0",
            "2606::200:5efe:169.254.169.254",
        ] {
            assert_eq!(kind(form), AddressKind::Never, "{form}");
        }
    }
}
