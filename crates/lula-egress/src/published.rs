//! Ports of servers inside a sandbox, as they are reached from outside it: from this machine's loopback, and
//! by name from other sandboxes of the same run.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::policy::{DomainName, EgressRule, InvalidEgress};

/// Names below it are those of sandboxes. They are never asked for outside.
const SANDBOXES: &str = "lula.internal";

/// The network of one sandbox, for the process that answers there.
pub trait SandboxNetwork: fmt::Debug + Send + Sync + 'static {
    /// A stream socket in it that is not connected and does not block. It is made at once, or not at all.
    fn stream(&self, to: IpAddr) -> io::Result<OwnedFd>;

    /// A listener in it on a port, which does not block.
    fn listener(&self, port: u16) -> io::Result<OwnedFd>;
}

/// The other sandboxes that one sandbox may know of by name.
pub trait SandboxNeighbours: Send + Sync + 'static {
    /// The network in which the server of that name and port is, where there is one.
    fn find(&self, name: &DomainName, port: u16) -> Option<Arc<dyn SandboxNetwork>>;
}

/// A port of a server inside, and where it is to be reached.
///
/// ```
/// use lula_egress::PublishedPort;
/// let port: PublishedPort = "web=3000:8080".parse().unwrap();
/// assert_eq!((port.inside(), port.outside()), (8080, 3000));
/// assert_eq!(port.name().unwrap().as_str(), "web.lula.internal");
/// assert!("443".parse::<PublishedPort>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublishedPort {
    name: Option<DomainName>,
    outside: u16,
    inside: u16,
}

impl PublishedPort {
    /// The port of the server inside.
    pub fn inside(&self) -> u16 {
        self.inside
    }

    /// The port of this machine; 0 for any that is free.
    pub fn outside(&self) -> u16 {
        self.outside
    }

    /// The name by which other sandboxes of the run reach it.
    pub fn name(&self) -> Option<&DomainName> {
        self.name.as_ref()
    }

    /// The rule that lets another sandbox of the run reach it.
    pub fn rule(&self) -> Option<EgressRule> {
        let name = self.name.as_ref()?;
        format!("tcp://{name}:{}", self.inside).parse().ok()
    }
}

impl FromStr for PublishedPort {
    type Err = InvalidEgress;
    fn from_str(given: &str) -> Result<Self, InvalidEgress> {
        let invalid = |why: &str| InvalidEgress::new("published port", given, why);
        let (name, ports) = match given.split_once('=') {
            Some((name, ports)) => (Some(name), ports),
            None => (None, given),
        };
        let name = match name {
            Some(label) if label.contains('.') => {
                return Err(invalid("its name is one word, as in web=8080"));
            }
            Some(label) => Some(format!("{label}.{SANDBOXES}").parse()?),
            None => None,
        };
        let (outside, inside) = ports.split_once(':').unwrap_or((ports, ports));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.then(|| text.parse::<u16>().ok()).flatten();
            number.ok_or_else(|| {
                invalid(
                    "write PORT, OUTSIDE:INSIDE or NAME=PORT, as in 8080, 3000:8080 or web=8080",
                )
            })
        };
        let (outside, inside) = (number(outside)?, number(inside)?);
        if matches!(inside, 0 | 53 | 80 | 443) {
            return Err(invalid(
                "the port inside is 1 to 65535, and not 53, 80 or 443, which are answered there: have the \
                 server listen on another one, and write OUTSIDE:INSIDE",
            ));
        }
        Ok(Self {
            name,
            outside,
            inside,
        })
    }
}

impl fmt::Display for PublishedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.name.as_ref().map(DomainName::as_str);
        if let Some(label) = label.and_then(|name| name.split('.').next()) {
            write!(f, "{label}=")?;
        }
        if self.outside == self.inside {
            write!(f, "{}", self.inside)
        } else {
            write!(f, "{}:{}", self.outside, self.inside)
        }
    }
}

impl Serialize for PublishedPort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublishedPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl DomainName {
    /// Whether it is the name of a sandbox, which exists here alone.
    pub(crate) fn is_of_sandbox(&self) -> bool {
        self.as_str()
            .strip_suffix(SANDBOXES)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_port_alone_is_the_same_on_both_sides() {
        let port: PublishedPort = "8080".parse().unwrap();
        assert_eq!((port.outside(), port.inside()), (8080, 8080));
        assert_eq!(port.rule(), None);
        let port: PublishedPort = "0:5432".parse().unwrap();
        assert_eq!((port.outside(), port.inside()), (0, 5432));
    }

    #[test]
    fn a_name_is_for_other_sandboxes() {
        let port: PublishedPort = "db=0:5432".parse().unwrap();
        let rule = port.rule().unwrap().to_string();
        assert_eq!(rule, "tcp://db.lula.internal:5432");
        assert!(port.name().unwrap().is_of_sandbox());
        for other in ["lula.internal.example.org", "notlula.internal"] {
            assert!(!other.parse::<DomainName>().unwrap().is_of_sandbox());
        }
    }

    #[test]
    fn what_is_no_port_is_refused_with_the_way_to_write_it() {
        for bad in [
            "",
            "0",
            "x",
            "80",
            "443",
            "53",
            "70000",
            "+1",
            "1:",
            ":1",
            "1:2:3",
            "a.b=1",
            "=1",
            "-a=1",
            "127.0.0.1:8080",
        ] {
            assert!(bad.parse::<PublishedPort>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn the_short_form_reads_back(name in "[a-z]{0,5}", outside: u16, inside in 1_u16..) {
            let name = if name.is_empty() { name } else { format!("{name}=") };
            if let Ok(port) = format!("{name}{outside}:{inside}").parse::<PublishedPort>() {
                prop_assert_eq!(port.to_string().parse::<PublishedPort>(), Ok(port));
            }
        }
    }
}
