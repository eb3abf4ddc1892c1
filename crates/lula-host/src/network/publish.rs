//! Ports of servers inside that an operator published, and their listeners on this machine's loopback.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use lula_egress::PublishedPort;

use super::error::NetworkError;

/// What is published of every sandbox, and listeners that wait for the first.
#[derive(Debug, Default)]
pub(super) struct PublishedPorts {
    ports: Vec<PublishedPort>,
    reserved: Mutex<Vec<(PublishedPort, TcpListener)>>,
}

impl PublishedPorts {
    /// Takes the ports of this machine at once: one that is taken is told before anything runs.
    pub(super) fn reserve(words: &[String]) -> Result<Self, NetworkError> {
        let mut reserved: Vec<(PublishedPort, TcpListener)> = Vec::new();
        for word in words {
            let port: PublishedPort = word.parse()?;
            if reserved
                .iter()
                .any(|(other, _)| other.inside() == port.inside())
            {
                return Err(NetworkError::Published {
                    port: port.to_string(),
                    why: "the port inside is published twice".to_owned(),
                });
            }
            let listener = listen(&port)?;
            reserved.push((port, listener));
        }
        Ok(Self {
            ports: reserved.iter().map(|(port, _)| port.clone()).collect(),
            reserved: Mutex::new(reserved),
        })
    }

    pub(super) fn ports(&self) -> &[PublishedPort] {
        &self.ports
    }

    /// The listeners of one sandbox. Where another sandbox has the port already, this one gets any that is
    /// free.
    pub(super) fn take(&self) -> Result<Vec<(PublishedPort, TcpListener)>, NetworkError> {
        let mut reserved = self
            .reserved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .split_off(0);
        for port in &self.ports {
            if !reserved.iter().any(|(has, _)| has == port) {
                let listener = listen(port).or_else(|_| bind(0).map_err(|why| taken(port, &why)));
                reserved.push((port.clone(), listener?));
            }
        }
        Ok(reserved)
    }
}

/// A listener on this machine's loopback for a published port.
pub(super) fn listen(port: &PublishedPort) -> Result<TcpListener, NetworkError> {
    bind(port.outside()).map_err(|why| taken(port, &why))
}

fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

fn taken(port: &PublishedPort, why: &io::Error) -> NetworkError {
    NetworkError::Published {
        port: port.to_string(),
        why: format!(
            "port {} of this machine cannot be had: {why}",
            port.outside()
        ),
    }
}

/// Where a published port is reached, as receipts and lists have it.
pub(super) fn shown(port: &PublishedPort, listener: &TcpListener) -> io::Result<String> {
    Ok(said(port, listener.local_addr()?))
}

pub(super) fn said(port: &PublishedPort, at: std::net::SocketAddr) -> String {
    let name = port.name().map(|name| format!(" ({name})"));
    format!("{at} -> {}{}", port.inside(), name.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_first_sandbox_gets_the_port_and_the_next_another() {
        let free = bind(0).unwrap().local_addr().unwrap().port();
        let ports = PublishedPorts::reserve(&words(&[&format!("{free}:8080")])).unwrap();
        let first = ports.take().unwrap();
        let second = ports.take().unwrap();
        let at = |taken: &[(PublishedPort, TcpListener)]| taken[0].1.local_addr().unwrap().port();
        assert_eq!(at(&first), free);
        assert_ne!(at(&second), free);
        // Once the first is gone, its port is there for the next.
        drop(first);
        assert_eq!(at(&ports.take().unwrap()), free);
    }

    #[test]
    fn a_port_that_is_taken_is_told_before_anything_runs() {
        let other = bind(0).unwrap();
        let port = other.local_addr().unwrap().port();
        let refused = PublishedPorts::reserve(&words(&[&format!("{port}:8080")])).unwrap_err();
        assert!(refused.to_string().contains(&port.to_string()), "{refused}");
        let twice = PublishedPorts::reserve(&words(&["0:8080", "a=0:8080"])).unwrap_err();
        assert!(twice.to_string().contains("twice"), "{twice}");
    }
}
