//! Names of the outside, which a test decides and may change at any moment.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use lula_egress::{DomainName, NameResolver};

/// A name that is not answered while the lock is held.
type Hanging = (String, &'static Mutex<()>);

/// Every name leads to loopback unless a test says otherwise.
#[derive(Clone, Default)]
pub(crate) struct TestResolver {
    names: Arc<Mutex<HashMap<String, Vec<IpAddr>>>>,
    asked: Arc<Mutex<Vec<String>>>,
    hanging: Arc<Mutex<Option<Hanging>>>,
}

impl TestResolver {
    pub(crate) fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|one| one.parse().unwrap()).collect();
        self.names
            .lock()
            .unwrap()
            .insert(name.to_owned(), addresses);
    }

    /// Makes a name hang until what is returned is dropped.
    pub(crate) fn hang(&self, name: &str) -> MutexGuard<'static, ()> {
        let lock: &'static Mutex<()> = Box::leak(Box::default());
        *self.hanging.lock().unwrap() = Some((name.to_owned(), lock));
        lock.lock().unwrap()
    }

    /// The names that were asked for outside.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl NameResolver for TestResolver {
    fn resolve(&self, name: &DomainName) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(name.to_string());
        let hanging = self.hanging.lock().unwrap().clone();
        if let Some((slow, lock)) = hanging
            && slow == name.as_str()
        {
            drop(lock.lock());
        }
        let names = self.names.lock().unwrap();
        Ok(names
            .get(name.as_str())
            .cloned()
            .unwrap_or_else(|| vec![crate::sandbox::loopback()]))
    }
}
